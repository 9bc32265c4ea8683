/** InferencePool of the Gateway API Inference Extension 1.6, with the default values of its CRD. */
import {
  choice,
  type Infer,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../ground/schema/field.ts'
import { rule } from '../../ground/schema/rules.ts'
import { portNumber, referenceName } from '../../ground/schema/shapes/references.ts'
import { groupName, kindName } from '../../ground/schema/strings.ts'

const labelValue = text({
  max: 63,
  pattern: '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$',
  expects: 'a label value',
})

const labelKey = text({
  min: 1,
  max: 253,
  pattern:
    '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$',
  expects: 'a label key',
})

const port = object('InferencePort', { number: required(portNumber, 'Number of the port.') })

const targetPorts = list(port, {
  min: 1,
  max: 8,
  rules: [
    rule<readonly { readonly number: number }[]>({
      message: 'port number must be unique',
      holds: (ports) => new Set(ports.map(({ number }) => number)).size === ports.length,
    }),
  ],
})

interface Picker {
  readonly kind?: string
  readonly port?: unknown
}

const endpointPickerRef = object(
  'EndpointPickerRef',
  {
    group: optional(groupName, { doc: 'API group; empty for a Service.', fill: '' }),
    kind: optional(kindName, { doc: 'Kind; only Services are supported.', fill: 'Service' }),
    name: required(referenceName, 'Name, in the namespace of the pool.'),
    port: optional(port, 'Port of the Service; required for a Service.'),
    failureMode: optional(
      choice('EndpointPickerFailureMode', {
        FailClose: 'requests are refused',
        FailOpen: 'requests go to an endpoint of the gateway’s choice',
      }),
      { doc: 'What happens if the picker fails.', fill: 'FailClose' },
    ),
  },
  {
    rules: [
      rule<Picker>({
        message: "port is required when kind is 'Service' or unspecified (defaults to 'Service')",
        holds: ({ kind = 'Service', port: given }) => kind !== 'Service' || given !== undefined,
        at: 'port',
      }),
    ],
  },
)

export const inferencePoolSpec = object('InferencePoolSpec', {
  selector: required(
    object('PoolSelector', {
      matchLabels: required(
        map(labelValue, {
          keys: labelKey,
          max: 64,
          rules: [
            rule<object>({
              message: 'must have at least 1 label',
              holds: (labels) => Object.keys(labels).length > 0,
            }),
          ],
        }),
        'Labels that a Pod must have, all of them.',
      ),
    }),
    'Pods of the same namespace that serve the model.',
  ),
  targetPorts: required(
    targetPorts,
    'Ports of every Pod; each with the address of a Pod is an endpoint.',
  ),
  appProtocol: optional(
    choice('InferenceAppProtocol', {
      http: 'HTTP/1.1',
      'kubernetes.io/h2c': 'HTTP/2 in clear',
    }),
    { doc: 'What is spoken to the Pods.', fill: 'http' },
  ),
  endpointPickerRef: optional(
    endpointPickerRef,
    'Who chooses an endpoint for each request. A pool without one is not accepted.',
  ),
})
export type InferencePoolSpec = Infer<typeof inferencePoolSpec>
