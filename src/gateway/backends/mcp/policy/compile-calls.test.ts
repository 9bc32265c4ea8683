import { expect, it } from 'vitest'
import { compileCalls } from './compile-calls.ts'

it('masks arguments for good, because nothing restores them in results', () => {
  const regex = { builtins: ['Email'], action: 'Reversible' } as const
  const spec = { promptGuard: { request: [{ regex }] } } as const
  const compiled = compileCalls(spec as never, {} as never)
  expect(compiled?.config?.requestGuards).toMatchObject([{ type: 'regex', action: 'Mask' }])
  const message = 'Reversible is for requests to models: what matches is masked for good'
  expect(compiled?.problems).toEqual([
    { path: 'promptGuard.request[0].regex.action', message, partial: true },
  ])
})
