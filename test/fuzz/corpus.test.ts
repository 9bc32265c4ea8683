import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inputOf } from './support/mutate.ts'
import { corpusOf, loadTarget, targetNames } from './support/run.ts'
import type { FuzzRun, FuzzTarget } from './support/target.ts'

const seed = 1
const inputs = 100

describe.each(targetNames)('fuzz target %s', (name) => {
  let target: FuzzTarget
  let run: FuzzRun

  beforeAll(async () => {
    target = await loadTarget(name)
    run = await target.start()
  })
  afterAll(() => run.close?.())

  it('passes for every input of its corpus', async () => {
    for (const { file, input } of corpusOf(name)) {
      await expect(
        Promise.resolve(input).then((bytes) => run.check(bytes)),
        `test/fuzz/corpus/${name}/${file}`,
      ).resolves.toBeUndefined()
    }
  })

  it(`passes for the first ${inputs} inputs of seed ${seed}`, async () => {
    for (let index = 0; index < inputs; index++) {
      await expect(
        Promise.resolve(inputOf(target, seed, index)).then((bytes) => run.check(bytes)),
        `input ${index}`,
      ).resolves.toBeUndefined()
    }
  })
})

it('the fuzzer finds an input that breaks a property, and generates the same input from the same seed', () => {
  const target: FuzzTarget = {
    about: 'no input has three equal letters in a row',
    samples: ['abcabc'],
    words: ['aa'],
    start: () => ({ check: () => undefined }),
  }
  const broken = Array.from({ length: 2000 }, (_, index) => index).find((index) =>
    /([a-z])\1\1/.test(inputOf(target, seed, index).toString()),
  )
  expect(broken).toBeDefined()
  expect(inputOf(target, seed, broken ?? 0)).toEqual(inputOf(target, seed, broken ?? 0))
  expect(inputOf(target, seed, broken ?? 0)).not.toEqual(inputOf(target, seed + 1, broken ?? 0))
})
