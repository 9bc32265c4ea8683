/** `server/discover`: what servers offer, in the modern era. */
import type { McpPrefixMode } from '../../../../ground/model/mcp-targets.ts'
import { jsonValue, member, replace, textOf } from '../json/node.ts'
import { type CacheHints, hintsOf, hintsText, unavailableKey } from '../lists.ts'
import type { McpResponse } from '../message.ts'
import { metaKeys } from '../meta-keys.ts'
import { joinInstructions, mergeCapabilities } from './initialize.ts'
import { modernVersions } from './versions.ts'

/** What one server offers. */
export interface DiscoverResult {
  readonly target: string
  readonly versions: readonly string[]
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
  readonly serverInfo: unknown
  readonly hints: CacheHints
}

/** Reads the response to `server/discover`. Returns undefined if the server does not know the method. */
export function readDiscoverResult(
  target: string,
  { text, result }: McpResponse,
): DiscoverResult | undefined {
  const versions = member(result, 'supportedVersions')
  const capabilities = member(result, 'capabilities')
  const serverInfo = member(member(result, '_meta'), metaKeys.serverInfo)
  if (versions?.type !== 'array' || capabilities?.type !== 'object') return undefined
  return {
    target,
    versions: (versions.values ?? []).flatMap((node) => textOf(text, node) ?? []),
    capabilities: jsonValue(text, capabilities) as Record<string, unknown>,
    instructions: textOf(text, member(result, 'instructions')),
    serverInfo: serverInfo && jsonValue(text, serverInfo),
    hints: hintsOf(text, result),
  }
}

/** Whether the server speaks a modern version that the gateway supports. */
export const isModernServer = ({ versions }: DiscoverResult): boolean =>
  modernVersions.some((version) => versions.includes(version))

/** Returns the response of the only server without the versions that the gateway does not support. */
export function withSupportedVersions(response: McpResponse): string {
  const { text, result } = response
  const versions = member(result, 'supportedVersions')
  const part = readDiscoverResult('', response)
  if (part === undefined || versions === undefined) return text
  const supported = part.versions.filter((version) => modernVersions.includes(version))
  if (supported.length === part.versions.length) return text
  return replace(text, versions, JSON.stringify(supported))
}

/** Returns the result for several servers. `missing` names those that did not respond. */
export function mergeDiscoverResults(
  parts: readonly DiscoverResult[],
  missing: readonly string[],
  version: string,
  prefixMode: McpPrefixMode,
): string {
  const result = JSON.stringify({
    resultType: 'complete',
    supportedVersions: modernVersions,
    capabilities: mergeCapabilities(parts),
    instructions: joinInstructions(
      parts.map((part) => [part.target, part] as const),
      prefixMode,
    ),
    _meta: {
      [metaKeys.serverInfo]: { name: 'sluice', version },
      ...(missing.length > 0 && { [unavailableKey]: missing }),
    },
  })
  const hints = hintsText(
    parts.map((part) => part.hints),
    missing.length > 0,
  )
  return `${result.slice(0, -1)},${hints}}`
}
