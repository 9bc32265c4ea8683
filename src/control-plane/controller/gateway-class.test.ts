import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.ts'
import { type KubeClient, KubeError } from '../../kube/index.ts'
import { ClassKeeper } from './gateway-class.ts'

/** An API server that holds the default class, changed by each thing that is applied. */
function keeperOf(refusal?: KubeError) {
  let generation = 1
  let known = { uid: 'a', generation }
  const told: string[] = []
  const client = {
    get: async () => ({ spec: { controllerName: 'sluice.dev/gateway-controller' } }),
    apply: async () => {
      if (refusal !== undefined) throw refusal
      return { metadata: { uid: 'a', generation: ++generation } }
    },
  } as unknown as KubeClient
  const keeper = new ClassKeeper({
    client,
    owners: {},
    settings: { classParameters: { agentgateway: { namespace: 'default', name: 'new' } } },
    isWriting: () => true,
    known: () => known,
    onInForce: () => told.push('in force'),
    say: () => undefined,
  })
  const fold = () => {
    known = { uid: 'a', generation }
    keeper.look()
  }
  return { keeper, told, fold, applied: () => generation > 1 }
}

it('holds what goes by the class until the class is known as the settings say', async () => {
  const { keeper, told, fold, applied } = keeperOf()
  keeper.begin()
  await waitFor('the class', applied)
  await keeper.close()
  keeper.look()
  expect([keeper.isInForce, told]).toEqual([false, []])
  fold()
  expect([keeper.isInForce, told]).toEqual([true, ['in force']])
})

it('holds nothing for a class that it may not make', async () => {
  const { keeper, told } = keeperOf(new KubeError(403, 'Forbidden', 'not yours'))
  keeper.begin()
  await waitFor('the refusal', () => told.length > 0)
  expect([keeper.isInForce, told]).toEqual([true, ['in force']])
  await keeper.close()
})
