import { object, optional, required, text } from '../../../../../ground/schema/field.ts'
import { shortString } from '../../../../../ground/schema/strings.ts'
import { model } from '../vendor.ts'

const fields = {
  region: optional(
    text({
      min: 1,
      max: 63,
      pattern: '^[a-z0-9-]+$',
      expects: "lowercase letters, digits and '-'",
    }),
    { doc: 'Region of the vendor API.', default: 'us-east-1' },
  ),
  guardrail: optional(
    object('AWSGuardrailConfig', {
      identifier: required(shortString, 'Guardrail to apply.'),
      version: required(shortString, 'Version of the guardrail.'),
    }),
    { doc: 'Guardrail of the vendor that is applied; none if not set.', security: true },
  ),
} as const

const config = object('VendorFConfig', { model, ...fields })

/** The settings without a model, for models that are objects of their own. */
export const bedrockModel = object('BedrockModelConfig', fields)

export const vendorF = {
  config: optional(config, 'Vendor F.'),
  provider: () => import('./provider.ts'),
}
