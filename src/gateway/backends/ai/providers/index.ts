/** Every vendor of language models, by its neutral name. A line here enables a vendor. */
import { modelOnly, type Vendor } from './vendor.ts'
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
} as const satisfies Readonly<Record<string, Vendor>>

type Vendors = typeof vendors

export const vendorNames = Object.keys(vendors) as readonly (keyof Vendors)[]

/** The fields of a provider's schema, one for each vendor. */
export const vendorFields = Object.fromEntries(
  vendorNames.map((name) => [name, vendors[name].config]),
) as { readonly [Name in keyof Vendors]: Vendors[Name]['config'] }
