/** Derives what proxies need to find endpoints from Services and EndpointSlices, which have no conditions. */

import { compareText } from '../../../ground/model/names.ts'
import type { Endpoint, ServicePort, WorkloadResource } from '../../../ground/model/resources.ts'
import type { EndpointSpec, ServiceSpec } from '../../api/core-kinds.ts'
import type { ObjectOf } from '../../api/kinds.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'

function servicePort(port: NonNullable<ServiceSpec['ports']>[number]): ServicePort {
  const { name = '', targetPort, appProtocol, protocol } = port
  return {
    name,
    port: port.port,
    ...(protocol === 'UDP' && { protocol }),
    ...(typeof targetPort === 'number' && { targetPort }),
    ...(appProtocol !== undefined && { appProtocol }),
  }
}

/** What references to a Service depend on. */
type ServiceView = Pick<ServiceSpec, 'type' | 'ports'>

export const serviceStage: Stage = {
  name: 'service',
  kinds: ['Service'],
  derive(self: ObjectState): Derived {
    if (self.object === undefined) return {}
    const { namespace, name } = self.ref
    const spec = specOf<'Service'>(self.object)
    const value: ServiceView = { type: spec.type, ports: spec.ports }
    const ports = (spec.ports ?? [])
      .filter(({ protocol = 'TCP' }) => protocol === 'TCP' || protocol === 'UDP')
      .map(servicePort)
    return {
      value,
      resources: [
        {
          type: 'service',
          key: `service/${namespace}/${name}`,
          namespace,
          name,
          ports,
          publishNotReady: spec.publishNotReadyAddresses === true,
        },
      ],
    }
  },
}

/** The Service of a name; undefined if it does not exist. Changes of its metadata wake no reader. */
export function readService(
  namespace: string,
  name: string,
  read: Reader,
): ServiceView | undefined {
  const ref = { kind: 'Service', namespace, name }
  const view = read.value<ServiceView>(serviceStage.name, ref)
  // Read so that explanations name the missing object.
  if (view === undefined) read.object('Service', namespace, name)
  return view
}

/**
 * If `ready` is not set, the endpoint is ready, and `serving` defaults to it (discovery.k8s.io/v1). Terminating
 * endpoints are left out unless they still serve.
 */
function endpointsOf(endpoint: EndpointSpec): Endpoint[] {
  const { addresses = [], conditions, zone, nodeName, hints } = endpoint
  const { ready = true, serving = ready, terminating = false } = conditions ?? {}
  if (terminating && !serving) return []
  const forZones = (hints?.forZones ?? []).map(({ name }) => name)
  const forNodes = (hints?.forNodes ?? []).map(({ name }) => name)
  return addresses.map((address) => ({
    address,
    ready: ready && !terminating,
    ...(terminating && { serving }),
    ...(zone !== undefined && { zone }),
    ...(nodeName !== undefined && { node: nodeName }),
    ...(forZones.length > 0 && { forZones }),
    ...(forNodes.length > 0 && { forNodes }),
  }))
}

export const workloadStage: Stage = {
  name: 'workload',
  kinds: ['EndpointSlice'],
  derive(self: ObjectState): Derived {
    const service = self.object?.metadata.labels?.['kubernetes.io/service-name']
    if (self.object === undefined || service === undefined) return {}
    const { namespace, name } = self.ref
    const fields = self.object as ObjectOf<'EndpointSlice'>
    const resource: WorkloadResource = {
      type: 'workload',
      key: `workload/${namespace}/${name}`,
      namespace,
      name,
      service,
      ports: (fields.ports ?? []).flatMap(({ name: port = '', port: number, appProtocol }) =>
        number === undefined
          ? []
          : [{ name: port, port: number, ...(appProtocol !== undefined && { appProtocol }) }],
      ),
      endpoints: (fields.endpoints ?? [])
        .flatMap(endpointsOf)
        .sort((a, b) => compareText(a.address, b.address)),
    }
    return { resources: [resource] }
  },
}
