// Introductions as bytes, and what can be wrong with a set of them.
#include "convoy/comm/gloo/introduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "convoy/base/error.h"
#include "convoy/comm/byte_fields.h"
#include "convoy/comm/gloo/interfaces.h"
#include "convoy/comm/gloo/wire.h"

namespace convoy::comm {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

void check_two(const Introduction& a, const Introduction& b, std::size_t rank) {
  if (a.addresses.size() != b.addresses.size()) {
    refuse(fmt::format(
        "rank 0 has {} network interfaces ({}) and rank {} has {} ({}): comm.interfaces must name as many "
        "on all hosts",
        a.addresses.size(), fmt::join(a.addresses, ", "), rank, b.addresses.size(), fmt::join(b.addresses, ", ")));
  }
  if (a.chunks != b.chunks || a.chunk_bytes != b.chunk_bytes) {
    refuse(fmt::format("rank 0 cuts messages into {} chunks of {} bytes and rank {} into {} of {}", a.chunks,
                       a.chunk_bytes, rank, b.chunks, b.chunk_bytes));
  }
  for (std::size_t lane = 0; lane < a.addresses.size(); ++lane) {
    const std::string& one = a.addresses[lane];
    const std::string& other = b.addresses[lane];
    if (is_ipv6(one) != is_ipv6(other)) {
      refuse(
          fmt::format("rank 0 on {} has the address {} and rank {} on {} has {}: they must be of one family; name "
                      "interfaces as \"NAME/ipv4\" or \"NAME/ipv6\" in comm.interfaces",
                      a.host, one, rank, b.host, other));
    }
    if (is_loopback(one) != is_loopback(other) || (is_loopback(one) && a.host != b.host)) {
      refuse(
          fmt::format("rank 0 on {} has the address {} and rank {} on {} has {}: a loopback address reaches one host "
                      "only; name a network interface in comm.interfaces",
                      a.host, one, rank, b.host, other));
    }
  }
}

}  // namespace

std::string encode(const Introduction& introduction) {
  FieldWriter fields;
  fields.text(introduction.host);
  fields.number(introduction.chunks);
  fields.number(introduction.chunk_bytes);
  fields.number(introduction.addresses.size(), 1);
  for (const std::string& address : introduction.addresses) fields.text(address);
  for (std::size_t rank = 0; rank < introduction.places.size(); ++rank) {
    fields.text(introduction.secrets[rank]);
    for (const std::string& place : introduction.places[rank]) fields.text(place);
  }
  return fields.bytes();
}

Introduction decode_introduction(const std::string& bytes, int rank, int size) {
  FieldReader fields(bytes);
  Introduction introduction;
  introduction.host = fields.text();
  introduction.chunks = fields.number();
  introduction.chunk_bytes = fields.number();
  const std::uint64_t lanes = fields.number(1);
  for (std::uint64_t lane = 0; lane < lanes && fields.good(); ++lane) introduction.addresses.push_back(fields.text());
  for (int other = 0; other < size; ++other) {
    introduction.secrets.push_back(fields.text());
    std::vector<std::string>& places = introduction.places.emplace_back();
    for (std::uint64_t lane = 0; lane < lanes && fields.good(); ++lane) places.push_back(fields.text());
  }
  if (!fields.finished() || lanes == 0 || lanes > kMaxLanes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("what rank {} says about itself in the store is damaged", rank));
  }
  return introduction;
}

void check_introductions(const std::vector<Introduction>& all) {
  for (std::size_t rank = 1; rank < all.size(); ++rank) check_two(all.front(), all[rank], rank);
}

}  // namespace convoy::comm
