/** The places that the `scope` of a guard may name. */
import {
  modelPlaces,
  type Place,
  responsePlaces,
} from '../../../../engines/messages/mask/places.ts'

/** Places in messages of MCP. Guards read `Definitions` only if their scope names it. */
const mcpPlaces = ['Arguments', 'Results', 'Resources', 'Prompts', 'Definitions'] as const
export type McpPlace = (typeof mcpPlaces)[number]

const mcpRequestPlaces: readonly McpPlace[] = ['Arguments', 'Prompts']
const mcpResponsePlaces = mcpPlaces.filter((place) => place !== 'Arguments')

export const scopeNames = [...modelPlaces, ...mcpPlaces] as const
export type ScopeName = (typeof scopeNames)[number]

export const isModelPlace = (name: ScopeName): name is Place =>
  (modelPlaces as readonly ScopeName[]).includes(name)

/** Returns the places that guards of these messages can read. */
export function placesOf(
  kind: 'model' | 'mcp',
  list: 'request' | 'response',
): readonly ScopeName[] {
  if (kind === 'mcp') {
    return list === 'request' ? mcpRequestPlaces : mcpResponsePlaces
  }
  return list === 'request' ? modelPlaces : [...responsePlaces]
}
