export { FileSource } from './files.ts'
export type { Examine, Validate } from './observed.ts'
export type { SecretPaths } from './redact.ts'
export { formatProblem } from './source-problem.ts'
