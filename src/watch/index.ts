export { DigestKey, openDigestKey, randomDigestKey } from './digest-key.ts'
export { FileSource, type FileSourceOptions, type FileSourceTiming } from './files.ts'
export type { Claim, ClaimContent, Examine, ObserveOptions, Validate } from './observed.ts'
export { type Manifests, readManifests } from './read-manifests.ts'
export {
  redact,
  type SecretPaths,
  type SecretSink,
  secretPlaceholder,
} from './redact.ts'
export { type IndexEntry, type IndexState, ResourceIndex } from './resource-index.ts'
export { formatProblem, type SourceProblem, type SourceProblemReason } from './source-problem.ts'
