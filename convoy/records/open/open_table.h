// Opens the CSV files of a run.
#pragma once

#include <string>

#include "convoy/records/open/run_data.h"

namespace convoy::records {

/// The same as open_data, for [data] format = "csv".
RunData open_table(const spec::DataRecipe& recipe, Files& files, const std::string& record_path, bool may_write);

}  // namespace convoy::records
