import { defineEvent, type EventOf } from './envelope.ts'

export interface DeploymentAppliedData {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly changes: readonly {
    readonly kind: string
    readonly name: string
    readonly change: 'created' | 'updated' | 'deleted'
  }[]
}

export const deploymentApplied = defineEvent<DeploymentAppliedData>()({
  name: 'DeploymentApplied',
  type: 'dev.sluice.deployment.applied.v1',
  version: 1,
  about: 'The objects of a Gateway are in the cluster as they should be, after they were not.',
  fields: {
    namespace: 'Namespace of the Gateway.',
    name: 'Name of the Gateway.',
    uid: 'Uid of the Gateway.',
    changes: 'What was created, updated or deleted; empty where an earlier failure has passed.',
  },
})
export type DeploymentApplied = EventOf<typeof deploymentApplied>

export interface DeploymentFailedData {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly message: string
}

export const deploymentFailed = defineEvent<DeploymentFailedData>()({
  name: 'DeploymentFailed',
  type: 'dev.sluice.deployment.failed.v1',
  version: 1,
  about: 'The cluster does not take what a Gateway needs; what runs is left as it is.',
  fields: {
    namespace: 'Namespace of the Gateway.',
    name: 'Name of the Gateway.',
    uid: 'Uid of the Gateway.',
    message: 'Which object is refused, and why.',
  },
})
export type DeploymentFailed = EventOf<typeof deploymentFailed>
