/** InferencePools and their Pods, to bytes and back. */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  Pod as PodMessage,
  PodSchema,
  Pool as PoolMessage,
  PoolSchema,
} from '../../proto/gen/resource_pb.ts'
import type { PodResource, PoolResource } from '../model/inference-pools.ts'
import type { ResourceKey } from '../model/resources.ts'
import { oneOf } from './unreadable.ts'

const failureModes = ['FailOpen', 'FailClose'] as const
const appProtocols = ['http', 'kubernetes.io/h2c'] as const

export const poolOf = (pool: PoolResource): MessageInitShape<typeof PoolSchema> => ({
  namespace: pool.namespace,
  name: pool.name,
  targetPorts: [...pool.targetPorts],
  appProtocol: pool.appProtocol,
  ...(pool.picker && {
    picker: {
      namespace: pool.picker.target.namespace,
      name: pool.picker.target.name,
      port: pool.picker.target.port,
      failureMode: pool.picker.failureMode,
    },
  }),
  unusable: pool.unusable,
})

export const podOf = (pod: PodResource): MessageInitShape<typeof PodSchema> => ({
  namespace: pod.namespace,
  name: pod.name,
  pools: [...pod.pools],
  address: pod.address,
  ready: pod.ready,
})

export function decodePool(key: ResourceKey, message: PoolMessage): PoolResource {
  const { namespace, name, targetPorts, appProtocol, picker, unusable } = message
  return {
    type: 'pool',
    key,
    namespace,
    name,
    targetPorts,
    appProtocol: oneOf(appProtocols, appProtocol, 'appProtocol'),
    ...(picker && {
      picker: {
        target: {
          type: 'service',
          namespace: picker.namespace,
          name: picker.name,
          port: picker.port,
        },
        failureMode: oneOf(failureModes, picker.failureMode, 'failure mode'),
      },
    }),
    ...(unusable !== undefined && { unusable }),
  }
}

export function decodePod(key: ResourceKey, message: PodMessage): PodResource {
  const { namespace, name, pools, address, ready } = message
  return { type: 'pod', key, namespace, name, pools, address, ready }
}
