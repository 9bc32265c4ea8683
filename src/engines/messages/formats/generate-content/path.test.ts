import { describe, expect, it } from 'vitest'
import { readModelPath } from '../converse/path.ts'
import { readGeneratePath } from './path.ts'

const generate = (path: string) => readGeneratePath(path, undefined).model
const converse = (path: string) => readModelPath(path).model

describe('the path of a request', () => {
  it('has the model behind the last collection', () => {
    expect(generate('/v1beta/models/gemini-2.5-pro:generateContent')).toBe('gemini-2.5-pro')
    expect(generate('/v1/publishers/models/models/m:generateContent/')).toBe('m')
    expect(generate('/v1beta/tunedModels/mine:countTokens')).toBe('tunedModels/mine')
    expect(generate('/v1beta/MODELS/a:b:generateContent')).toBe('a:b')
  })

  it('has an id with slashes at Bedrock', () => {
    const id = 'arn:aws:bedrock:eu-west-1:1:inference-profile/eu.m'
    expect(converse(`/model/${id}/converse`)).toBe(id)
    expect(converse(`/model/${encodeURIComponent(id)}/converse-stream/`)).toBe(id)
  })

  it('is refused without a model', () => {
    for (const path of [
      '/v1beta/models/:generateContent',
      '/m:generateContent',
      '/models/m',
      '/',
    ]) {
      expect(() => generate(path)).toThrow('the path names no model')
    }
    for (const path of ['/model//converse', '/model/converse', '/m/converse', '/model/a/1']) {
      expect(() => converse(path)).toThrow('the path names no model')
    }
  })

  it('is read in linear time', () => {
    const started = process.cpuUsage()
    const long = 64_000
    expect(() => generate('/models/'.repeat(long) + 'a:'.repeat(long))).toThrow()
    expect(() => converse(`${'/model/'.repeat(long)}1`)).toThrow()
    // Seconds if each collection were compared with each end.
    expect(process.cpuUsage(started).user / 1_000).toBeLessThan(1_000)
  })
})
