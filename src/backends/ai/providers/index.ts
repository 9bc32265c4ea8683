/** Every vendor of language models, by its neutral name. One line here turns a vendor on. */
import type { Vendor } from './vendor.ts'
import { vendorA } from './vendor-a/index.ts'
import { vendorB } from './vendor-b/index.ts'
import { vendorC } from './vendor-c/index.ts'
import { vendorD } from './vendor-d/index.ts'
import { vendorE } from './vendor-e/index.ts'
import { vendorF } from './vendor-f/index.ts'

export const vendors = {
  vendorA,
  vendorB,
  vendorC,
  vendorD,
  vendorE,
  vendorF,
} as const satisfies Readonly<Record<string, Vendor>>

type Vendors = typeof vendors

export const vendorNames = Object.keys(vendors) as readonly (keyof Vendors)[]

/** The fields of a provider's schema, one for each vendor. */
export const vendorFields = Object.fromEntries(
  vendorNames.map((name) => [name, vendors[name].config]),
) as { readonly [Name in keyof Vendors]: Vendors[Name]['config'] }
