/** API keys that are events of the log, and in no manifest (`sluice keys … --dynamic`). */

/** Entries (see `readApiKeyEntry`) by their names. */
export type DynamicKeys = ReadonlyMap<string, string>

/** A policy accepts the dynamic keys of its namespace if its `configMapSelector` has at most these labels. */
const labels: Readonly<Record<string, string>> = { 'sluice.dev/api-keys': 'true' }

/** The labels, as options and messages write them. */
export const dynamicKeyLabel = 'sluice.dev/api-keys=true'

export function selectsDynamicKeys(matchLabels: Readonly<Record<string, string>>): boolean {
  const wanted = Object.entries(matchLabels)
  return wanted.length > 0 && wanted.every(([name, value]) => labels[name] === value)
}

/** The name of the input with the DynamicKeys of a namespace. It is not set if there are none. */
export const dynamicKeysInput = (namespace: string): string => `dynamic-keys:${namespace}`
