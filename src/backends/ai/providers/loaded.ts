/** How each vendor is called. Only proxies import this module, which loads all providers. */
import { vendorNames, vendors } from './index.ts'
import type { Provider } from './provider.ts'

const loaded: ReadonlyMap<string, Provider> = new Map(
  await Promise.all(
    vendorNames.map(async (name) => [name, (await vendors[name].provider()).default] as const),
  ),
)

/** `vendor` is a name of the table: the wire refuses backends that have others. */
export function providerOf(vendor: string): Provider {
  const provider = loaded.get(vendor)
  if (provider === undefined) throw new Error(`unknown vendor ${vendor}`)
  return provider
}
