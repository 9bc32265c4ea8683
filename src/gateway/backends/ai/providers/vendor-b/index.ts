import { object, optional, required } from '../../../../../ground/schema/field.ts'
import { endpointText } from '../../../../../ground/schema/host.ts'
import { rule } from '../../../../../ground/schema/rules.ts'
import { shortString, tinyString } from '../../../../../ground/schema/strings.ts'

interface Deployment {
  readonly apiVersion?: string
  readonly deploymentName?: string
}

const config = object(
  'VendorBConfig',
  {
    endpoint: required(endpointText, 'Host of the vendor API; a scheme is removed.'),
    deploymentName: optional(
      shortString,
      "Deployment of the model; required unless apiVersion is 'v1', which can use the model of the request instead.",
    ),
    apiVersion: optional(tinyString, { doc: 'Version of the vendor API.', default: 'v1' }),
  },
  {
    rules: [
      rule<Deployment>({
        message: "deploymentName is required unless apiVersion is 'v1'",
        cel: "!has(self.apiVersion) || self.apiVersion == 'v1' || has(self.deploymentName)",
        holds: ({ apiVersion, deploymentName }) =>
          (apiVersion ?? 'v1') === 'v1' || deploymentName !== undefined,
        at: 'deploymentName',
      }),
    ],
  },
)

export const vendorB = {
  config: optional(config, 'Vendor B.'),
  provider: () => import('./provider.ts'),
}
