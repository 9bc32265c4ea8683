import { type ObjectKey, objectKey } from '../../src/ground/model/names.ts'
import type { Moment } from '../log/loaded-log.ts'

interface AgentRow {
  /** `namespace/name` of the backend, and its key. */
  readonly backend: string
  readonly object: ObjectKey
  /** Host and port. */
  readonly server: string
}

/** The A2A agents of the configuration. */
export const agentsModel = ({ resources }: Moment): AgentRow[] =>
  [...resources.entries()].flatMap(([, { resource }]) => {
    if (resource.type !== 'backend' || resource.destination.type !== 'a2a') return []
    const { namespace, name, destination } = resource
    return [
      {
        backend: `${namespace}/${name}`,
        object: objectKey({ kind: 'GatewayBackend', namespace, name }),
        server: `${destination.host}:${destination.port}`,
      },
    ]
  })
