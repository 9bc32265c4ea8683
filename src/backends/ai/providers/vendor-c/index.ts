import { optional } from '../../../../schema/field.ts'
import { modelOnly } from '../vendor.ts'

export const vendorC = {
  config: optional(modelOnly('VendorCConfig'), 'Vendor C.'),
  provider: () => import('./provider.ts'),
}
