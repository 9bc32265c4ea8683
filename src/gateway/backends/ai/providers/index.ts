/** Every vendor of language models, by its neutral name. A line here enables a vendor. */
import type { ProviderConfig } from '../../../../ground/model/model-providers.ts'
import type { Property } from '../../../../ground/schema/field.ts'
import { azure } from './azure/index.ts'
import { custom } from './custom/index.ts'
import { presetSpellings } from './presets.ts'
import { modelOnly, type Spelling, type Vendor } from './vendor.ts'
import { vendorB } from './vendor-b/index.ts'
import { vendorE } from './vendor-e/index.ts'
import { vendorF } from './vendor-f/index.ts'

export const vendors = {
  vendorA: modelOnly('VendorAConfig', 'Vendor A.', () => import('./vendor-a/provider.ts')),
  vendorB,
  vendorC: modelOnly('VendorCConfig', 'Vendor C.', () => import('./vendor-c/provider.ts')),
  vendorD: modelOnly('VendorDConfig', 'Vendor D.', () => import('./vendor-d/provider.ts')),
  vendorE,
  vendorF,
  custom,
} as const satisfies Readonly<Record<string, Vendor>>

/** Names that stand for settings of a vendor. */
const spellings = { azure, ...presetSpellings }

type Vendors = typeof vendors
type Spellings = typeof spellings

export const vendorNames = Object.keys(vendors) as readonly (keyof Vendors)[]

const byName = new Map(Object.entries<Pick<Spelling<never>, 'needsHost' | 'toConfig'>>(spellings))

/** Names that users may write, of which a provider has exactly one. */
export const providerNames: readonly string[] = [...vendorNames, ...byName.keys()]

/** Names of servers that have no host of their own. */
export const hostlessNames: readonly string[] = [
  'custom',
  ...[...byName].flatMap(([name, { needsHost }]) => (needsHost ? [name] : [])),
]

/** The fields of a provider's schema, one for each name. */
export const providerNameFields = Object.fromEntries(
  Object.entries<{ readonly config: Property<unknown, boolean> }>({ ...vendors, ...spellings }).map(
    ([name, { config }]) => [name, config],
  ),
) as { readonly [Name in keyof Vendors]: Vendors[Name]['config'] } & {
  readonly [Name in keyof Spellings]: Spellings[Name]['config']
}

/** Returns the settings of a provider, by the name that users wrote. */
export function configOfNamed(name: string, set: object): ProviderConfig {
  return byName.get(name)?.toConfig(set as never) ?? { ...set, vendor: name }
}
