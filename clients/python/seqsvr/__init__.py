"""A client of seqsvr: Client for threads, AsyncClient for asyncio."""
from ._aio import AsyncClient
from ._plain import Client
from ._protocol import Ask, Mark, Range, SeqError, Ticket

__version__ = "1.0.0"
__all__ = ["Ask", "AsyncClient", "Client", "Mark", "Range", "SeqError", "Ticket"]
