package com.github.seqsvr.client;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A connection to the RESP port of a router, with its parser of replies. One thread reads, and one writes. */
final class Connection implements AutoCloseable {
  final Options.Address address;
  private final Socket socket;
  private final InputStream in;
  private final byte[] buffer = new byte[1 << 16];
  private int from, to;

  Connection(Options options, Options.Address address) {
    this.address = address;
    Socket plain = new Socket();
    try {
      plain.setTcpNoDelay(true);
      int millis = (int) options.connect.toMillis();
      plain.connect(new InetSocketAddress(address.host(), address.port()), millis);
      plain.setSoTimeout(millis);
      socket = options.tls == null ? plain : secured(options, plain);
      in = socket.getInputStream();
      if (options.token != null) {
        write(command("AUTH", options.token));
        if (read() instanceof SeqException refused) throw refused;
      }
      socket.setSoTimeout(0);
    } catch (IOException e) {
      close(plain);
      throw SeqException.disconnected(address + ": " + e.getMessage());
    } catch (RuntimeException e) {
      close(plain);
      throw e;
    }
  }

  private static Socket secured(Options options, Socket plain) throws IOException {
    var secured = (javax.net.ssl.SSLSocket) options.tls.getSocketFactory().createSocket(plain, plain.getInetAddress().getHostName(), plain.getPort(), true);
    var parameters = secured.getSSLParameters();
    parameters.setEndpointIdentificationAlgorithm("HTTPS"); // the certificate must have the host's name
    secured.setSSLParameters(parameters);
    secured.startHandshake();
    return secured;
  }

  void within(long millis) throws IOException { socket.setSoTimeout((int) Math.max(1, millis)); }

  void write(byte[] commands) throws IOException { socket.getOutputStream().write(commands); }

  @Override public void close() { close(socket); }

  private static void close(Socket socket) {
    try {
      socket.close();
    } catch (IOException e) {
      // it is of no use any more
    }
  }

  /** Reports whether read may return without waiting. */
  boolean more() { return from < to; }

  /** Reads a reply: a Long, a String, a List, null, or a SeqException. */
  Object read() throws IOException {
    byte kind = next();
    if (kind == ':') return number();
    String line = line();
    switch (kind) {
      case '+': return line;
      case '-': return faultOf(line);
      case '$': return line.equals("-1") ? null : text(Integer.parseInt(line));
      case '*': return line.equals("-1") ? null : list(Integer.parseInt(line));
      default: throw new IOException("not a reply of RESP: " + (char) kind + line);
    }
  }

  private byte next() throws IOException {
    if (from == to) {
      int n = in.read(buffer, 0, buffer.length);
      if (n < 0) throw new IOException("the router closed the connection");
      from = 0;
      to = n;
    }
    return buffer[from++];
  }

  private Long number() throws IOException {
    long n = 0;
    for (byte b = next(); b != '\r'; b = next()) n = n * 10 + b - '0';
    next();
    return n;
  }

  private String line() throws IOException {
    var out = new java.io.ByteArrayOutputStream(64);
    for (byte b = next(); b != '\r'; b = next()) out.write(b);
    next();
    return out.toString(StandardCharsets.UTF_8);
  }

  private String text(int size) throws IOException {
    byte[] out = new byte[size];
    for (int i = 0; i < size; i++) out[i] = next();
    next();
    next();
    return new String(out, StandardCharsets.UTF_8);
  }

  private List<Object> list(int size) throws IOException {
    List<Object> out = new ArrayList<>();
    for (int i = 0; i < size; i++) out.add(read());
    return out;
  }

  private static final Pattern named = Pattern.compile("([A-Z][A-Z_]+): .*"), had = Pattern.compile(".*it has got (\\d+) from (\\d+).*");
  private static final Map<String, String> words = Map.of("NOAUTH", "UNAUTHENTICATED", "WRONGPASS", "UNAUTHENTICATED", "NOPERM", "FORBIDDEN");

  /** Returns the error of "TRYAGAIN NO_QUORUM: text", "ERR OVERFLOW: text", or of a text without a code. */
  static SeqException faultOf(String text) {
    String word = text.split(" ", 2)[0], rest = text.substring(Math.min(text.length(), word.length() + 1));
    Matcher name = named.matcher(rest), numbers = had.matcher(rest);
    String code = name.matches() ? name.group(1) : words.getOrDefault(word, rest.startsWith("unknown command") ? "UNIMPLEMENTED" : "BAD_ARGUMENT");
    if (code.equals("ID_CONFLICT") && numbers.matches()) {
      return new SeqException(code, rest, false, Long.parseLong(numbers.group(2)), Long.parseLong(numbers.group(1)));
    }
    return new SeqException(code, rest, word.equals("TRYAGAIN"));
  }

  /** Returns a command of RESP. */
  static byte[] command(Object... words) {
    var out = new StringBuilder().append('*').append(words.length).append("\r\n");
    for (Object word : words) {
      String text = word.toString();
      int size = text.length();
      for (int i = 0; i < text.length(); i++) {
        if (text.charAt(i) > 127) {
          size = text.getBytes(StandardCharsets.UTF_8).length;
          break;
        }
      }
      out.append('$').append(size).append("\r\n").append(text).append("\r\n");
    }
    return out.toString().getBytes(StandardCharsets.UTF_8);
  }
}
