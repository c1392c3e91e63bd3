// Control messages as bytes.
#include "convoy/comm/gloo/wire.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "convoy/comm/byte_fields.h"

namespace convoy::comm {
namespace {

static_assert(std::is_trivially_copyable_v<WireHead> && sizeof(WireHead) == 64, "a head is 64 bytes without holes");

constexpr std::size_t kMostNoticeText = 1000;

void put(FieldWriter& fields, const observe::BoardOperation& operation) {
  fields.number(operation.sequence);
  fields.text(std::string_view(operation.name.data(), operation.name.size()));
  fields.number(static_cast<std::uint64_t>(operation.dtype), 1);
  fields.number(static_cast<std::uint64_t>(operation.reduce), 1);
  fields.number(static_cast<std::uint64_t>(operation.elements));
  fields.number(static_cast<std::uint32_t>(operation.root), 4);
  fields.number(operation.layout);
}

// Returns whether the operation makes sense.
bool take(FieldReader& fields, observe::BoardOperation& operation) {
  operation.sequence = fields.number();
  const std::string name = fields.text();
  const std::uint64_t dtype = fields.number(1);
  const std::uint64_t reduce = fields.number(1);
  operation.elements = static_cast<std::int64_t>(fields.number());
  operation.root = static_cast<int>(static_cast<std::uint32_t>(fields.number(4)));
  operation.layout = fields.number();
  if (!fields.good() || operation.sequence == 0 || name.size() != operation.name.size() || name.back() != '\0' ||
      dtype > static_cast<std::uint64_t>(kLastDType) || reduce > static_cast<std::uint64_t>(kLastReduceOp)) {
    return false;
  }
  std::copy(name.begin(), name.end(), operation.name.begin());
  operation.dtype = static_cast<DType>(dtype);
  operation.reduce = static_cast<ReduceOp>(reduce);
  return true;
}

}  // namespace

std::string encode(const Control& control) {
  FieldWriter fields;
  fields.number(control.released.size(), 1);
  for (const std::uint64_t count : control.released) fields.number(count);
  fields.number(control.line.sequence);
  fields.number(static_cast<std::uint64_t>(control.line.phase), 1);
  fields.number(control.line.chunk);
  fields.number(static_cast<std::uint32_t>(control.line.waits_for), 4);
  fields.number(static_cast<std::uint64_t>(control.line.pid));
  fields.number(static_cast<std::uint64_t>(control.beat_age_ns));
  fields.number(control.entered.size(), 1);
  for (const observe::BoardOperation& operation : control.entered) put(fields, operation);
  fields.number(control.notice ? 1 : 0, 1);
  if (control.notice) {
    fields.number(static_cast<std::uint32_t>(control.notice->rank), 4);
    fields.number(static_cast<std::uint64_t>(control.notice->code), 1);
    fields.text(std::string_view(control.notice->message).substr(0, kMostNoticeText));
  }
  CONVOY_CHECK(fields.bytes().size() <= kMaxControlBytes, "a control message fits into its buffer");
  return fields.bytes();
}

std::optional<Control> decode_control(std::string_view body) {
  FieldReader fields(body);
  Control control;
  const std::uint64_t lanes = fields.number(1);
  if (lanes > kMaxLanes) return std::nullopt;
  for (std::uint64_t lane = 0; lane < lanes; ++lane) control.released.push_back(fields.number());
  control.line.sequence = fields.number();
  const std::uint64_t phase = fields.number(1);
  control.line.chunk = fields.number();
  control.line.waits_for = static_cast<int>(static_cast<std::uint32_t>(fields.number(4)));
  control.line.pid = static_cast<std::int64_t>(fields.number());
  control.beat_age_ns = static_cast<std::int64_t>(fields.number());
  if (phase > static_cast<std::uint64_t>(observe::BoardPhase::kMoving)) return std::nullopt;
  control.line.phase = static_cast<observe::BoardPhase>(phase);
  const std::uint64_t entered = fields.number(1);
  if (entered > observe::ProgressBoard::kHistory) return std::nullopt;
  for (std::uint64_t i = 0; i < entered; ++i) {
    observe::BoardOperation operation;
    if (!take(fields, operation)) return std::nullopt;
    control.entered.push_back(operation);
  }
  const std::uint64_t noticed = fields.number(1);
  if (noticed == 1) {
    AbortNotice notice;
    notice.rank = static_cast<int>(static_cast<std::uint32_t>(fields.number(4)));
    const std::uint64_t code = fields.number(1);
    if (code > static_cast<std::uint64_t>(ErrorCode::kInternal)) return std::nullopt;
    notice.code = static_cast<ErrorCode>(code);
    notice.message = fields.text();
    control.notice = std::move(notice);
  }
  if (noticed > 1 || !fields.finished()) return std::nullopt;
  return control;
}

std::optional<WireHead> read_head(std::string_view bytes) {
  if (bytes.size() < kWireHeadBytes) return std::nullopt;
  WireHead head;
  std::memcpy(&head, bytes.data(), kWireHeadBytes);
  if (head.magic != WireHead::kMagic || head.header.bytes > bytes.size() - kWireHeadBytes) return std::nullopt;
  return head;
}

}  // namespace convoy::comm
