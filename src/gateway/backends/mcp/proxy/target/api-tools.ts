/** The tools of targets with an OpenAPI document, compiled when they are first used. */
import { type CompiledDocument, compileDocument } from '../../openapi/operations.ts'
import type { OpenApiSource } from '../../openapi/settings.ts'
import { type McpTargetEntry, TargetMemory } from './targets.ts'

interface ApiTools extends CompiledDocument {
  readonly maxResultBytes: number
  readonly maxPages: number
}

const defaultResultBytes = 262_144

const memory = new TargetMemory<{ tools?: ApiTools }>(() => ({}))

/** Returns the tools of a target; undefined if it has no document. The control plane has checked the document. */
export function apiToolsOf(entry: McpTargetEntry): ApiTools | undefined {
  const { openapi, name } = entry.target
  if (openapi === undefined) return undefined
  const kept = memory.of(entry)
  if (kept.tools === undefined) {
    const source = JSON.parse(openapi) as OpenApiSource
    const { maxResultBytes = defaultResultBytes, maxPages = 1 } = source
    kept.tools = { ...compileDocument(source, name), maxResultBytes, maxPages }
  }
  return kept.tools
}
