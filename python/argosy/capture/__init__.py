"""Captures: what ``torch.export`` sees of a model, without its weights. The only part of Argosy that needs torch and transformers."""
