/** Where the fields of InferencePools differ from the messages of proto/resource.proto. */
import type { ServiceTarget } from '../../../ground/model/destinations.ts'
import type { EndpointPicker } from '../../../ground/model/inference-pools.ts'

type PickerMessage = Omit<ServiceTarget, 'type'> & Pick<EndpointPicker, 'failureMode'>

export const poolShapes = {
  Pool: { words: { appProtocol: ['http', 'kubernetes.io/h2c'] } },
  'Pool.Picker': {
    words: { failureMode: ['FailOpen', 'FailClose'] },
    toWire: ({ target, failureMode }: EndpointPicker) => ({ ...target, failureMode }),
    fromWire: ({ failureMode, ...target }: PickerMessage) => ({
      target: { type: 'service', ...target },
      failureMode,
    }),
  },
} as const
