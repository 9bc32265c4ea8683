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
  about: 'The objects of a Gateway in the cluster were changed and now are as planned.',
  fields: {
    namespace: 'Namespace of the Gateway.',
    name: 'Name of the Gateway.',
    uid: 'Uid of the Gateway.',
    changes:
      'Objects that were created, updated or deleted; empty if only an earlier failure was resolved.',
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
  about:
    'The API server refuses an object that a Gateway needs; the deployed objects stay unchanged.',
  fields: {
    namespace: 'Namespace of the Gateway.',
    name: 'Name of the Gateway.',
    uid: 'Uid of the Gateway.',
    message: 'The refused object, and the reason.',
  },
})
export type DeploymentFailed = EventOf<typeof deploymentFailed>
