/** Converts configurations of other gateways to manifests. */
export { Conversion, type ImportedManifest, type ImportFinding } from './conversion.ts'
export type { SourceDocument } from './field.ts'
export { readSourceFiles, SourceError } from './read.ts'
export type { ImportSource } from './source.ts'
export { detectSources, sources } from './sources.ts'
