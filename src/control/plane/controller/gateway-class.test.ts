import { expect, it } from 'vitest'
import { waitFor } from '../../../../test/support/wait-for.ts'
import { type KubeClient, KubeError } from '../../kube/index.ts'
import { GatewayClassReconciler } from './gateway-class.ts'

/** An API server that holds the default class, changed by each thing that is applied. */
function reconcilerOf(refusal?: KubeError) {
  let generation = 1
  let known = { uid: 'a', generation }
  const calls: string[] = []
  const client = {
    get: async () => ({ spec: { controllerName: 'sluice.dev/gateway-controller' } }),
    apply: async () => {
      if (refusal !== undefined) throw refusal
      return { metadata: { uid: 'a', generation: ++generation } }
    },
  } as unknown as KubeClient
  const reconciler = new GatewayClassReconciler({
    client,
    owners: {},
    settings: { classParameters: { agentgateway: { namespace: 'default', name: 'new' } } },
    isWriting: () => true,
    known: () => known,
    onInForce: () => calls.push('in force'),
    notify: () => undefined,
  })
  const fold = () => {
    known = { uid: 'a', generation }
    reconciler.folded()
  }
  return { reconciler, calls, fold, applied: () => generation > 1 }
}

it('waits until the GatewayClass is observed with the configured parameters', async () => {
  const { reconciler, calls, fold, applied } = reconcilerOf()
  reconciler.lead()
  await waitFor('the class', applied)
  await reconciler.close()
  reconciler.folded()
  expect([reconciler.isInForce, calls]).toEqual([false, []])
  fold()
  expect([reconciler.isInForce, calls]).toEqual([true, ['in force']])
})

it('does not wait if it is forbidden to write the GatewayClass', async () => {
  const { reconciler, calls } = reconcilerOf(new KubeError(403, 'Forbidden', 'not yours'))
  reconciler.lead()
  await waitFor('the refusal', () => calls.length > 0)
  expect([reconciler.isInForce, calls]).toEqual([true, ['in force']])
  await reconciler.close()
})
