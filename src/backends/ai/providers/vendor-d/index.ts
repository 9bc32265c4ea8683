import { optional } from '../../../../schema/field.ts'
import { modelOnly } from '../vendor.ts'

export const vendorD = {
  config: optional(modelOnly('VendorDConfig'), 'Vendor D.'),
  provider: () => import('./provider.ts'),
}
