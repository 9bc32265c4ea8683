/** What references of routes and policies lead to: Services, GatewayBackends and InferencePools. */
import type { PodResource, PoolResource } from '../../model/inference-pools.ts'
import type {
  BackendResource,
  Resource,
  ServiceResource,
  WorkloadResource,
} from '../../model/resources.ts'
import { BackendTable } from '../upstream/backends.ts'
import type { Locality } from '../upstream/locality.ts'
import { PoolTable } from '../upstream/pools.ts'
import { ServiceTable } from '../upstream/services.ts'

export type DestinationResource =
  | ServiceResource
  | WorkloadResource
  | BackendResource
  | PoolResource
  | PodResource

export class DestinationTables {
  readonly services: ServiceTable
  readonly backends = new BackendTable()
  readonly pools = new PoolTable()

  constructor(locality: Locality | undefined) {
    this.services = new ServiceTable(locality)
  }

  /** `old`: what the resource was until now. */
  set(resource: DestinationResource, old: Resource | undefined): void {
    switch (resource.type) {
      case 'service':
        this.services.setService(resource)
        break
      case 'workload':
        // A slice may have moved to another Service.
        if (old?.type === 'workload') this.services.removeSlice(old)
        this.services.setSlice(resource)
        break
      case 'backend':
        this.backends.set(resource)
        break
      case 'pool':
        this.pools.set(resource)
        break
      case 'pod':
        // Other pools may select it now.
        if (old?.type === 'pod') this.pools.removePod(old)
        this.pools.setPod(resource)
    }
  }

  remove(resource: DestinationResource): void {
    switch (resource.type) {
      case 'service':
        this.services.removeService(resource)
        break
      case 'workload':
        this.services.removeSlice(resource)
        break
      case 'backend':
        this.backends.remove(resource)
        break
      case 'pool':
        this.pools.remove(resource)
        break
      case 'pod':
        this.pools.removePod(resource)
    }
  }
}
