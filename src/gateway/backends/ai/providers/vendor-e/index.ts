import { object, optional, required } from '../../../../../ground/schema/field.ts'
import { tinyString } from '../../../../../ground/schema/strings.ts'
import { model } from '../vendor.ts'

const config = object('VendorEConfig', {
  model,
  projectId: required(tinyString, 'Cloud project.'),
  region: required(tinyString, 'Location of the project; may be global.'),
})

/** The settings without a model, for models that are objects of their own. */
export const vertexModel = object('VertexModelConfig', {
  projectId: required(tinyString, 'Cloud project.'),
  region: optional(tinyString, { doc: 'Location of the project.', default: 'global' }),
})

export const vendorE = {
  config: optional(config, 'Vendor E.'),
  provider: () => import('./provider.ts'),
}
