// A star of stream sockets. Rank 0 sees every end of a connection, names the rank, and tells the others.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/socket_exchange.h"

#include "core/support/hash.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Clock = std::chrono::steady_clock;
using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

constexpr int kPollMs = 100;
constexpr Seconds kGoodbye{1.0};  // for the last words of a rank
constexpr Seconds kMeeting{60.0};
constexpr int kNumPorts = 16;
constexpr std::size_t kLongestFault = 4096;

/// The connection is over; errno says why, or 0 at its end.
struct ConnectionLost {};
struct TooLate {};

Clock::time_point after(Seconds time) { return Clock::now() + std::chrono::duration_cast<Clock::duration>(time); }

class Socket {
 public:
  explicit Socket(int descriptor = -1) : m_descriptor(descriptor) {}
  Socket(Socket&& other) noexcept : m_descriptor(std::exchange(other.m_descriptor, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(m_descriptor, other.m_descriptor);
    return *this;
  }
  ~Socket() {
    if (m_descriptor >= 0) close(m_descriptor);
  }
  int descriptor() const { return m_descriptor; }
  bool isOpen() const { return m_descriptor >= 0; }

  void send(ConstBytes bytes, Clock::time_point deadline) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(m_descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0)
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
      else
        await(POLLOUT, deadline);
    }
  }

  void receive(Bytes bytes, Clock::time_point deadline) const {
    while (!bytes.empty()) {
      const ssize_t got = ::recv(m_descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got == 0) throw ConnectionLost();
      if (got > 0)
        bytes = bytes.subspan(static_cast<std::size_t>(got));
      else
        await(POLLIN, deadline);
    }
  }

 private:
  void await(short event, Clock::time_point deadline) const {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) throw ConnectionLost();
    if (Clock::now() > deadline) throw TooLate();
    pollfd state{.fd = m_descriptor, .events = event, .revents = 0};
    poll(&state, 1, kPollMs);
  }

  int m_descriptor;
};

template <class T>
ConstBytes bytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
Bytes bytesOf(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

struct FrameHeader {
  enum Kind : std::uint32_t { Data, Fault } kind = Data;
  std::int32_t rank = 0;     // of a fault: the cause
  std::uint32_t length = 0;  // of its sentence
  std::uint32_t isReported = 0;
};

/// The bytes of one rank for each other rank, one after the other.
struct Frame {
  std::vector<std::uint64_t> sizes;  // by rank
  std::vector<std::byte> bytes;

  ConstBytes piece(std::size_t rank) const {
    std::size_t first = 0;
    for (std::size_t i = 0; i < rank; ++i) first += sizes[i];
    return ConstBytes(bytes).subspan(first, sizes[rank]);
  }
};

struct Hello {
  std::int32_t process = 0;
  std::array<char, 60> host = {};

  static Hello own() {
    Hello hello{.process = getpid()};
    gethostname(hello.host.data(), hello.host.size() - 1);
    return hello;
  }
};

class SocketExchange final : public Exchange {
 public:
  SocketExchange(int rank, int size, std::vector<Socket> peers, Patience patience)
      : m_rank(rank), m_size(size), m_peers(std::move(peers)), m_patience(patience), m_hellos(m_peers.size()) {}

  int rank() const override { return m_rank; }
  int size() const override { return m_size; }
  std::optional<PeerFault> fault() const override { return m_fault; }

  std::vector<std::pair<std::string, std::string>> details() const override {
    return {{"communicator", "sockets, through rank 0"}};
  }

  void exchange(std::span<const ConstBytes> out, std::span<const Bytes> in, std::string_view name) override {
    if (m_fault) throw CommunicationError(m_fault->sentence, true);
    m_name = name;
    const Clock::time_point start = Clock::now();
    m_deadline = after(m_patience.limit());
    if (m_rank == 0)
      relay(out, in);
    else
      viaRank0(out, in);
    m_patience.waited(Clock::now() - start);
  }

  void abort(std::string_view reason) noexcept override {
    try {
      if (!m_fault) tell({.rank = m_rank, .sentence = std::string(reason), .isReported = true}, -1);
    } catch (...) {
      // The end of the connection says it, too.
    }
  }

  /// The process at the other end.
  void greet() {
    m_name = "the start of the job";
    m_deadline = after(kMeeting);
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer)
      guarded(peer, [&](const Socket& socket) {
        socket.send(bytesOf(std::as_const(m_own)), m_deadline);
        socket.receive(bytesOf(m_hellos[peer]), m_deadline);
      });
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(m_size); }
  int rankOf(std::size_t peer) const { return m_rank == 0 ? static_cast<int>(peer) + 1 : 0; }

  std::string describe(std::size_t peer) const {
    const Hello& hello = m_hellos[peer];
    if (hello.process == 0) return fmt::format("rank {} of {}", rankOf(peer), m_size);
    return fmt::format("rank {} of {} (process {} on {})", rankOf(peer), m_size, hello.process, hello.host.data());
  }

  /// Tells the other ranks, except one. A rank that does not read in time is left out.
  void tell(const PeerFault& fault, int except) {
    const std::string text = fault.sentence.substr(0, kLongestFault);
    const FrameHeader header{.kind = FrameHeader::Fault,
                             .rank = fault.rank,
                             .length = static_cast<std::uint32_t>(text.size()),
                             .isReported = fault.isReported};
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      if (rankOf(peer) == except) continue;
      try {
        m_peers[peer].send(bytesOf(header), after(kGoodbye));
        m_peers[peer].send(std::as_bytes(std::span(text)), after(kGoodbye));
      } catch (...) {
        continue;
      }
    }
  }

  [[noreturn]] void fail(PeerFault fault) {
    m_fault = std::move(fault);
    if (m_rank == 0) tell(*m_fault, m_fault->rank);
    throw CommunicationError(m_fault->sentence, true);
  }

  [[noreturn]] void failLate(std::size_t peer) {
    fail({.rank = rankOf(peer),
          .sentence = fmt::format("{} did not reach {} within {:.0f} s. It may be hanging: attach a debugger, or wait "
                                  "longer with --rank-timeout.",
                                  describe(peer), m_name, m_patience.limit().count())});
  }

  template <class Action>
  void guarded(std::size_t peer, Action action) {
    try {
      action(m_peers[peer]);
    } catch (const ConnectionLost&) {
      fail(
          {.rank = rankOf(peer),
           .sentence = fmt::format("{} has ended while rank {} waited for it in {}.", describe(peer), m_rank, m_name)});
    } catch (const TooLate&) {
      failLate(peer);
    }
  }

  void viaRank0(std::span<const ConstBytes> out, std::span<const Bytes> in) {
    m_deadline += std::chrono::seconds(5);  // rank 0 knows who is missing
    try {
      sendPieces(m_peers.front(), out);
    } catch (...) {
      // Its last words may be there.
    }
    guarded(0, [&](const Socket& socket) {
      receiveHeader(socket);
      const std::vector<std::uint64_t> sizes = receiveSizes(socket);
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        checkSize(rank, sizes[rank], in[rank].size());
        if (sizes[rank] > 0) socket.receive(in[rank], m_deadline);
      }
    });
  }

  void sendPieces(const Socket& socket, std::span<const ConstBytes> pieces) const {
    std::vector<std::uint64_t> sizes;
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      sizes.push_back(static_cast<int>(rank) == m_rank && m_rank != 0 ? 0 : pieces[rank].size());
    socket.send(bytesOf(FrameHeader()), m_deadline);
    socket.send(std::as_bytes(std::span(sizes)), m_deadline);
    for (std::size_t rank = 0; rank < ranks(); ++rank) socket.send(pieces[rank].first(sizes[rank]), m_deadline);
  }

  std::vector<std::uint64_t> receiveSizes(const Socket& socket) const {
    std::vector<std::uint64_t> sizes(ranks());
    socket.receive(std::as_writable_bytes(std::span(sizes)), m_deadline);
    return sizes;
  }

  /// Throws what another rank reports in place of its data.
  void receiveHeader(const Socket& socket) {
    FrameHeader header;
    socket.receive(bytesOf(header), m_deadline);
    if (header.kind == FrameHeader::Data) return;
    std::string text(std::min<std::size_t>(header.length, kLongestFault), ' ');
    socket.receive(std::as_writable_bytes(std::span(text)), m_deadline);
    fail({.rank = header.rank, .sentence = text, .isReported = header.isReported != 0});
  }

  void checkSize(std::size_t rank, std::size_t sent, std::size_t expected) {
    if (static_cast<int>(rank) == m_rank || sent == expected) return;
    const std::string reason =
        fmt::format("rank {} sends {} bytes in {}, but rank {} expects {}. All ranks must run the same plan.", rank,
                    sent, m_name, m_rank, expected);
    abort(reason);
    throw CommunicationError(reason, false);
  }

  Frame receiveFrame(const Socket& socket) {
    receiveHeader(socket);
    Frame frame{.sizes = receiveSizes(socket)};
    std::uint64_t total = 0;
    for (const std::uint64_t size : frame.sizes) total += size;
    frame.bytes.resize(total);
    socket.receive(frame.bytes, m_deadline);
    return frame;
  }

  void relay(std::span<const ConstBytes> out, std::span<const Bytes> in) {
    std::vector<std::optional<Frame>> frames(m_peers.size());
    while (std::ranges::any_of(frames, [](const auto& frame) { return !frame; })) receiveReady(frames);
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      std::vector<ConstBytes> pieces = {out[peer + 1]};
      for (std::size_t from = 0; from < m_peers.size(); ++from)
        pieces.push_back(from == peer ? ConstBytes() : frames[from]->piece(peer + 1));
      guarded(peer, [&](const Socket& socket) { sendPieces(socket, pieces); });
    }
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      const ConstBytes piece = frames[peer]->piece(0);
      checkSize(peer + 1, piece.size(), in[peer + 1].size());
      if (!piece.empty()) std::memcpy(in[peer + 1].data(), piece.data(), piece.size());
    }
  }

  /// A rank whose bytes are there may end while others are awaited.
  void receiveReady(std::vector<std::optional<Frame>>& frames) {
    std::vector<pollfd> states;
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer)
      states.push_back({.fd = m_peers[peer].descriptor(),
                        .events = static_cast<short>(frames[peer] ? POLLRDHUP : POLLIN | POLLRDHUP),
                        .revents = 0});
    poll(states.data(), states.size(), kPollMs);
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      if (states[peer].revents == 0) continue;
      guarded(peer, [&](const Socket& socket) {
        if (frames[peer]) throw ConnectionLost();
        frames[peer] = receiveFrame(socket);
      });
    }
    if (Clock::now() <= m_deadline) return;
    const auto missing = std::ranges::find_if(frames, [](const auto& frame) { return !frame; });
    if (missing != frames.end()) failLate(static_cast<std::size_t>(missing - frames.begin()));
  }

  int m_rank;
  int m_size;
  std::vector<Socket> m_peers;  // of rank 0 the ranks from 1 on, of the others rank 0
  Patience m_patience;
  Hello m_own = Hello::own();
  std::vector<Hello> m_hellos;
  std::string m_name;
  Clock::time_point m_deadline;
  std::optional<PeerFault> m_fault;
};

// Meeting over TCP.

/// First words at a connection.
struct Card {
  std::uint64_t job = 0;  // of the token
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

std::uint64_t jobOf(const SocketMeeting& meeting) { return fnv1a64(meeting.token); }

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first) freeaddrinfo(first);
  }
};

Socket connected(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.isOpen() || connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) != 0) return Socket();
  const int on = 1;
  setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

Socket listening(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.isOpen() || bind(socket.descriptor(), address.ai_addr, address.ai_addrlen) != 0 ||
      listen(socket.descriptor(), SOMAXCONN) != 0)
    return Socket();
  return socket;
}

Socket openAt(const std::string& host, int port, Socket (*open)(const addrinfo&)) {
  const addrinfo hints{.ai_flags = AI_NUMERICSERV, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  Addresses addresses;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses.first) != 0) return Socket();
  return open(*addresses.first);
}

/// Nothing: the host has an address.
std::optional<Error> unknownHost(int rank, const std::string& host) {
  const addrinfo hints{.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  Addresses addresses;
  const int problem = getaddrinfo(host.c_str(), nullptr, &hints, &addresses.first);
  if (problem == 0) return std::nullopt;
  return Error{
      fmt::format("rank {}: the host {} has no address: {}. Check MASTER_ADDR.", rank, host, gai_strerror(problem)),
      ErrorKind::RunFailed};
}

int endOfPorts(const SocketMeeting& meeting) { return meeting.firstPort + kNumPorts; }

/// Both sides say which job they are of; whoever is of another one is sent away.
bool exchangesCards(const Socket& socket, const Card& own, Card& other) {
  try {
    socket.send(bytesOf(own), after(kGoodbye));
    socket.receive(bytesOf(other), after(kGoodbye));
  } catch (...) {
    return false;
  }
  return other.job == own.job && other.size == own.size;
}

Socket listeningAtAnyPort(const SocketMeeting& meeting) {
  Socket listener;
  for (int port = meeting.firstPort; port < endOfPorts(meeting) && !listener.isOpen(); ++port)
    listener = openAt(meeting.host, port, listening);
  return listener;
}

Result<std::vector<Socket>> acceptAll(int size, const SocketMeeting& meeting) {
  const Socket listener = listeningAtAnyPort(meeting);
  if (!listener.isOpen())
    if (std::optional<Error> unknown = unknownHost(0, meeting.host)) return *unknown;
  if (!listener.isOpen())
    return Error{fmt::format("rank 0 cannot listen on {}, ports {} to {}. Choose another MASTER_PORT.", meeting.host,
                             meeting.firstPort, endOfPorts(meeting) - 1),
                 ErrorKind::RunFailed};
  std::vector<Socket> peers(static_cast<std::size_t>(size) - 1);
  const Clock::time_point deadline = after(kMeeting);
  const auto isMissing = [](const Socket& peer) { return !peer.isOpen(); };
  while (std::ranges::any_of(peers, isMissing)) {
    pollfd state{.fd = listener.descriptor(), .events = POLLIN, .revents = 0};
    if (Clock::now() > deadline) {
      const auto missing = std::ranges::find_if(peers, isMissing) - peers.begin() + 1;
      return Error{fmt::format("{} of {} ranks connected to {}; rank {} is missing. Check its host.",
                               size - std::ranges::count_if(peers, isMissing), size, meeting.host, missing),
                   ErrorKind::RunFailed};
    }
    if (poll(&state, 1, kPollMs) <= 0) continue;
    Socket peer(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    Card card;
    if (!peer.isOpen() || !exchangesCards(peer, {.job = jobOf(meeting), .rank = 0, .size = size}, card)) continue;
    if (card.rank > 0 && card.rank < size) peers[static_cast<std::size_t>(card.rank) - 1] = std::move(peer);
  }
  return peers;
}

Result<std::vector<Socket>> connectToRank0(int rank, int size, const SocketMeeting& meeting) {
  const Clock::time_point deadline = after(kMeeting);
  while (Clock::now() < deadline) {
    for (int port = meeting.firstPort; port < endOfPorts(meeting); ++port) {
      Socket socket = openAt(meeting.host, port, connected);
      Card card;
      if (!socket.isOpen()) continue;
      if (!exchangesCards(socket, {.job = jobOf(meeting), .rank = rank, .size = size}, card) || card.rank != 0)
        continue;
      std::vector<Socket> peers;
      peers.push_back(std::move(socket));
      return peers;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
  }
  if (std::optional<Error> unknown = unknownHost(rank, meeting.host)) return *unknown;
  return Error{
      fmt::format("rank {} of {} found no rank 0 at {}, ports {} to {}. Check its host, MASTER_ADDR and MASTER_PORT.",
                  rank, size, meeting.host, meeting.firstPort, endOfPorts(meeting) - 1),
      ErrorKind::RunFailed};
}

Result<std::shared_ptr<Exchange>> makeGreeted(int rank, int size, std::vector<Socket> peers, Patience patience) {
  auto exchange = std::make_shared<SocketExchange>(rank, size, std::move(peers), patience);
  try {
    exchange->greet();
  } catch (const CommunicationError& error) {
    return Error{error.what(), ErrorKind::RunFailed};
  }
  return std::shared_ptr<Exchange>(std::move(exchange));
}

}  // namespace

Result<std::shared_ptr<Exchange>> makeSocketExchange(int rank, int size, std::vector<int> sockets, Patience patience) {
  std::vector<Socket> peers;
  for (const int descriptor : sockets) peers.emplace_back(descriptor);
  return makeGreeted(rank, size, std::move(peers), patience);
}

Result<std::shared_ptr<Exchange>> meetBySockets(int rank, int size, const SocketMeeting& meeting, Patience patience) {
  Result<std::vector<Socket>> peers = rank == 0 ? acceptAll(size, meeting) : connectToRank0(rank, size, meeting);
  if (!peers) return peers.error();
  return makeGreeted(rank, size, std::move(*peers), patience);
}

}  // namespace fuseline
