#pragma once

#include "border/border.h"
#include "border/edit.h"

// How each edit is carried out; problems throw Refused. Used by apply_edits() alone.
namespace argosy {

void apply(Border& border, const RenameInput& edit);
void apply(Border& border, const RenameOutput& edit);
void apply(Border& border, const DropOutput& edit);
void apply(Border& border, const DropInput& edit);
void apply(Border& border, const RenameDim& edit);
void apply(Border& border, const OrderInputs& edit);
void apply(Border& border, const CastInput& edit);
void apply(Border& border, const FillInput& edit);
void apply(Border& border, const ComputeTokenTypes& edit);
void apply(Border& border, const AcceptEmptyState& edit);
void apply(Border& border, const WidenState& edit);
void apply(Border& border, const PostponeOutput& edit);
void apply(Border& border, const KeepLastLogits& edit);
void apply(Border& border, const GroupRows& edit);
void apply(Border& border, const AcceptGroupedRows& edit);
void apply(Border& border, const JoinOutputs& edit);
void apply(Border& border, const SpreadFeatures& edit);
void apply(Border& border, const TakeSpreadFeatures& edit);
void apply(Border& border, const DropFeatures& edit);
void apply(Border& border, const ComputePatchPositions& edit);
void apply(Border& border, const ComputeCrossStates& edit);
void apply(Border& border, const AttachAdapters& edit);

}  // namespace argosy
