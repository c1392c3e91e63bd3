// Looks at each column of a table alone.
#pragma once

#include "convoy/records/check/data_check.h"
#include "convoy/records/table/table_dataset.h"

namespace convoy::records {

/// A column with at least this ROC AUC alone is found to give the class away.
inline constexpr double kLeakingAuc = 0.95;

/// A column's ROC AUC is looked at where a class has at least so many samples, and the others together.
inline constexpr std::int64_t kLeastForAuc = 10;

/// Adds columns, and what is found about them, to a report: missing values, leaks, values that name single rows. A
/// category is scored by what the training part says about it; measured is on validation, or on the test part where
/// there is no validation.
void check_columns(const TableDataset& training_set, const Split& split, const DataPart& test, DataReport& report);

}  // namespace convoy::records
