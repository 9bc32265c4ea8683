import { object, optional, required, text } from '../../../../../ground/schema/field.ts'
import { shortString } from '../../../../../ground/schema/strings.ts'
import { model } from '../vendor.ts'

const config = object('VendorFConfig', {
  region: optional(
    text({
      min: 1,
      max: 63,
      pattern: '^[a-z0-9-]+$',
      expects: "lowercase letters, digits and '-'",
    }),
    { doc: 'Region of the vendor API.', default: 'us-east-1' },
  ),
  model,
  guardrail: optional(
    object('AWSGuardrailConfig', {
      identifier: required(shortString, 'Guardrail to apply.'),
      version: required(shortString, 'Version of the guardrail.'),
    }),
    { doc: 'Guardrail of the vendor that is applied; none if not set.', security: true },
  ),
})

export const vendorF = {
  config: optional(config, 'Vendor F.'),
  provider: () => import('./provider.ts'),
}
