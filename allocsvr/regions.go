package allocsvr

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/globalid"
	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// checkRegions returns seq.ErrBadArgument for invalid addresses, and for files without addresses.
func (c Config) checkRegions() error {
	if err := hostport.DialAll("regions:", c.Regions); err != nil {
		return fmt.Errorf("%w: %w", seq.ErrBadArgument, err)
	}
	switch {
	case len(c.Regions) == 0 && (c.RegionsCA != "" || c.RegionsTokenFile != ""):
		return fmt.Errorf("%w: regions-ca and regions-token-file: expected regions beside them", seq.ErrBadArgument)
	case c.RegionsTokenFile != "" && c.RegionsCA == "":
		return fmt.Errorf("%w: regions-token-file: expected regions-ca beside it, a token is not sent over plaintext", seq.ErrBadArgument)
	}
	return nil
}

// regionConns holds connections to other regions, by address.
type regionConns map[string]*grpc.ClientConn

// dialRegions makes connections to the other regions, and does not wait for them. It does not present this
// node's certificate, which means nothing there. It returns an error if a file or an address cannot be
// used.
func dialRegions(c Config) (regionConns, error) {
	if len(c.Regions) == 0 {
		return nil, nil
	}
	secured, err := rpc.NewTLS(rpc.TLSFiles{CA: c.RegionsCA}, c.Logger)
	if err != nil {
		return nil, fmt.Errorf("other regions (--regions-ca): %w", err)
	}
	options := append(secured.DialOptions(), c.Traces.DialOptions()...)
	if c.RegionsTokenFile != "" {
		token, err := rpc.TokenFile(c.RegionsTokenFile)
		if err != nil {
			return nil, fmt.Errorf("other regions (--regions-token-file): %w", err)
		}
		options = append(options, grpc.WithPerRPCCredentials(token))
	}
	conns := regionConns{}
	for _, addr := range c.Regions {
		if conns[addr] != nil {
			continue
		}
		if conns[addr], err = rpc.Dial(addr, options...); err != nil {
			delete(conns, addr)
			return nil, errors.Join(err, conns.close())
		}
	}
	return conns, nil
}

func (r regionConns) close() error {
	var errs []error
	for _, conn := range r {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// all returns the regions for the ID service.
func (r regionConns) all() (out []globalid.Region) {
	for addr, conn := range r {
		out = append(out, globalid.Region{Addr: addr, Ask: func(ctx context.Context) (*pb.SnowflakeNamespacesReply, error) {
			return pb.NewSnowflakeClient(conn).Namespaces(ctx, &pb.SnowflakeNamespacesRequest{})
		}})
	}
	return out
}
