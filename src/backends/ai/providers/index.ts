/** The neutral names of vendors, and who they are. */
import type { Provider, Vendor } from './provider.ts'
import { vendorA } from './vendor-a.ts'
import { vendorB } from './vendor-b.ts'
import { vendorC } from './vendor-c.ts'
import { vendorD } from './vendor-d.ts'
import { vendorE } from './vendor-e.ts'
import { vendorF } from './vendor-f.ts'

export const providers: Readonly<Record<Vendor, Provider>> = {
  vendorA,
  vendorB,
  vendorC,
  vendorD,
  vendorE,
  vendorF,
}
