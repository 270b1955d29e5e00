#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace argosy {

/// How a user names a model, and which parts of it are needed.
struct ModelRequest {
  std::filesystem::path name;       // a folder, a repository in the Hub's cache (models--ORG--NAME), or ORG/NAME
  std::string revision;             // of a repository: a branch, a tag or a commit; empty: main
  std::filesystem::path hub_cache;  // where the Hub keeps what it downloaded; may be empty
  bool weights = false;             // the checkpoint, every shard of it
  bool code = false;                // the Python files that the configuration names
};

/// Where a model is.
struct FoundModel {
  std::filesystem::path folder;  // has config.json; empty if something is missing
  std::string commit;            // of a snapshot in the Hub's cache; empty for any other folder
  std::string missing;           // why the Hub's cache cannot serve ORG/NAME yet, in words; empty if it can
};

/// Whether a name is one of the Hub's, ORG/NAME: two plain parts of letters, digits, dots, dashes and underscores.
bool is_hub_name(std::string_view name);

/// The folder that holds a model's config.json:
/// - a folder that has one, as it is: reading it later finds what is missing;
/// - of a repository in the Hub's cache the snapshot of the revision; without one that of refs/main, or the only one;
/// - for ORG/NAME, where no such folder exists, the same in `hub_cache` if all that is asked for is there; what is not
///   is no error, since a download can bring it: `folder` is empty then.
/// A config.json that is a link out of the folder is refused (io/inside_folder.h).
/// A folder is preferred to a Hub name that looks the same. Costs a few file accesses and the reading of an index.
Result<FoundModel> find_model(const ModelRequest& request);

}  // namespace argosy
