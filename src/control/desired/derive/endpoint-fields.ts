/** Fields of `backend` about endpoints, which have no effect on backends that are reached in other ways. */

const types: Readonly<Record<string, ReadonlySet<string>>> = {
  'health.active': new Set(['ai', 'mcp', 'a2a', 'dynamicForwardProxy', 'inferencePool']),
  sessionAffinity: new Set(['mcp', 'a2a', 'dynamicForwardProxy', 'inferencePool']),
  circuitBreaker: new Set(['mcp']),
}

/**
 * Returns why a field, or a part of it, has no effect on a type of backends; undefined if all of it has one.
 *
 * @param path of the field in its object
 * @param type field of GatewayBackend's spec that selects the type, or `inferencePool`; undefined if it is not known
 */
export function endpointNote(
  { field, path, spec }: { readonly field: string; readonly path: string; readonly spec: unknown },
  type: string | undefined,
): string | undefined {
  if (type === undefined) return undefined
  const hasActive = field === 'health' && (spec as { active?: unknown }).active !== undefined
  const name = hasActive ? 'health.active' : field
  if (types[name]?.has(type) !== true) return undefined
  return `${path}${hasActive ? '.active' : ''} has no effect on backends of type ${type}`
}
