import { optional } from '../../../../schema/field.ts'
import { modelOnly } from '../vendor.ts'

export const vendorA = {
  config: optional(modelOnly('VendorAConfig'), 'Vendor A.'),
  provider: () => import('./provider.ts'),
}
