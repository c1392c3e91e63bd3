// Feeds arbitrary bytes to the CIFAR-10 reader: the first byte says whether they are made to fill whole records, without
// which hardly any input would get past the size.
#include <cstddef>
#include <cstdint>
#include <string>

#include "convoy/base/error.h"
#include "convoy/records/images/cifar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t records = data[0] % 4;
  if (records > 0) bytes.resize(records * static_cast<std::size_t>(convoy::records::kCifarRecordBytes), '\3');
  convoy::records::ImageSet images;
  try {
    convoy::records::add_cifar_batch(bytes, "batch", images);
    if (images.count * convoy::records::kCifarRecordBytes != static_cast<std::int64_t>(bytes.size())) __builtin_trap();
    if (convoy::records::cifar_batch(images, 0, images.count) != bytes) __builtin_trap();
  } catch (const convoy::Error& error) {
    if (error.code() != convoy::ErrorCode::kInvalidArgument) __builtin_trap();
  }
  return 0;
}
