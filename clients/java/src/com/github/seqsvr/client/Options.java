package com.github.seqsvr.client;

import java.time.Duration;
import java.util.List;
import javax.net.ssl.SSLContext;

/** What a client is made with. Each method returns the same Options. */
public final class Options {
  final List<Address> addresses;
  String token;
  SSLContext tls;
  String space = "";
  Duration timeout = Duration.ofSeconds(10), connect = Duration.ofSeconds(3), silence = Duration.ofSeconds(5);
  int maxQueue = 100_000, maxWaits = 100;

  record Address(String host, int port) {
    @Override public String toString() { return host.contains(":") ? "[" + host + "]:" + port : host + ":" + port; }
  }

  private Options(List<Address> addresses) { this.addresses = addresses; }

  /** Returns options with host:port of the RESP ports of routers. With several, another one serves when one dies. */
  public static Options of(String... addresses) {
    if (addresses.length == 0) throw SeqException.bad("no address, expected host:port");
    return new Options(java.util.Arrays.stream(addresses).map(Options::parse).toList());
  }

  private static Address parse(String text) {
    int at = text.lastIndexOf(':');
    try {
      int port = Integer.parseInt(text.substring(at + 1));
      if (at > 0 && port > 0 && port < 65536) return new Address(text.substring(0, at).replaceAll("^\\[|\\]$", ""), port);
    } catch (NumberFormatException e) {
      // said below
    }
    throw SeqException.bad("address is " + text + ", expected host:port");
  }

  /** The caller's token, if the cluster has roles. */
  public Options token(String token) { this.token = token; return this; }

  /** TLS. If null, connections are in plain text. */
  public Options tls(SSLContext tls) { this.tls = tls; return this; }

  /** The space of keys that name none. */
  public Options space(String space) { this.space = space; return this; }

  /** How long a call may take, with all of its attempts. */
  public Options timeout(Duration timeout) { this.timeout = timeout; return this; }

  /** How long a connection may take to be there. */
  public Options connect(Duration connect) { this.connect = connect; return this; }

  /** After which silence a router counts as lost. */
  public Options silence(Duration silence) { this.silence = silence; return this; }

  /** How many calls may be without an answer. More fail with OVERLOADED. */
  public Options maxQueue(int maxQueue) { this.maxQueue = maxQueue; return this; }

  /** How many waits there may be, each with a connection. */
  public Options maxWaits(int maxWaits) { this.maxWaits = maxWaits; return this; }
}
