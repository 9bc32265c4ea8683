/** Converts configurations of other gateways to manifests. */
export { Conversion, type Finding, type Manifest } from './conversion.ts'
export type { SourceDocument } from './field.ts'
export { readSourceFiles, SourceError } from './read.ts'
export type { Source } from './source.ts'
export { detectSources, sources } from './sources.ts'
