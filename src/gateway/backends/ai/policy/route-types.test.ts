import { describe, expect, it } from 'vitest'
import {
  ownCollections,
  storedCollections,
} from '../../../../engines/messages/stored/collections.ts'
import { RouteTypes } from './route-types.ts'

const chat = '/v1/chat/completions'
const types = new RouteTypes({
  [chat]: 'Completions',
  '/v1/messages': 'Messages',
  '*': 'Passthrough',
})

describe('the type of a route', () => {
  it.each([
    chat,
    '/prefix/v1/chat/completions',
    '/v1/chat/%63ompletions',
    '/v1/chat/%2563ompletions',
    '/v1/chat/%252563ompletions',
    '/%76%31/%63%68%61%74/%63%6f%6d%70%6c%65%74%69%6f%6e%73',
    '/v1/chat%2Fcompletions',
    '/v1/chat%2fcompletions',
    '/v1/chat%252fcompletions',
    '/v1/chat\\completions',
    '/v1/chat%5Ccompletions',
    '//v1//chat//completions',
    '/v1/chat/completions/',
    '/v1/chat/completions//',
    '/v1/chat/completions%2F',
    '/V1/Chat/COMPLETIONS',
    '/v1/chat/completions;a=b',
    '/v1;x/chat;y=1/completions;z',
    '/v1/chat/completions%3Ba=b',
    '/v1/chat/completions/;a',
    '/v1/chat/completions%3Fa=b',
    '/v1/chat/completions%23a',
    '/v1/chat/completions.',
    '/v1/chat/completions%20',
    '/v1/chat./completions%20.',
  ])('is the type of /v1/chat/completions for %s', (path) => {
    expect(types.find(path)).toBe('Completions')
  })

  it.each([
    '/v1/chat/./completions',
    '/v1/chat/x/../completions',
    '/v1/chat/%2e/completions',
    '/v1/chat/x/%2E%2E/completions',
    '/v1/chat/x/.%2e/completions',
    '/v1/chat/%252e%252e/completions',
    '/v1/chat/x/..;a=b/completions',
    '/v1/chat/x%2f..%2fcompletions',
    '/v1/chat/completions/.',
    '/v1/chat/completions/x/..',
    '/v1/chat/completions%00',
    '/v1/chat/completions%0a',
  ])('is undecided for the ambiguous path %s', (path) => {
    expect(types.find(path)).toBeUndefined()
  })

  it.each([
    '/',
    '/v1/files',
    '/v1/chat/completions/x',
    '/v1/chat-completions',
    '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Feu.x/converse',
    '/v1beta/models/gemini-2.5-flash:generateContent',
  ])('is the default type for %s', (path) => {
    expect(types.find(path)).toBe('Passthrough')
  })

  it('is the same if the configured suffix is not normalized', () => {
    const odd = new RouteTypes({ '/V1//Chat/': 'Completions', '*': 'Passthrough' })
    expect(odd.find('/v1/chat')).toBe('Completions')
  })

  it('is the guarded type if two suffixes are the same to some provider', () => {
    const routes = { '/a': 'Passthrough', '/A': 'Completions', '*': 'Passthrough' } as const
    expect(new RouteTypes(routes).find('/a')).toBe('Completions')
  })

  it('is computed for long paths of any characters without an error', () => {
    for (const unit of ['%25', '%2e', '/', '.', ';', ' ', 'a.', '\\']) {
      const path = `/${unit.repeat(20_000)}x`
      expect(() => types.find(path)).not.toThrow()
    }
  })

  describe('without a map', () => {
    const unmapped = new RouteTypes()

    it.each([
      ['/v1/chat/completions', 'Completions'],
      ['/openai/deployments/d/chat/completions', 'Completions'],
      ['/v1/messages', 'Messages'],
      ['/prefix/V1//messages/', 'Messages'],
      ['/v1/messages/count_tokens', 'VendorCTokenCount'],
      ['/v1/responses', 'Responses'],
      ['/v1/embeddings', 'Embeddings'],
      ['/v1/models', 'Models'],
      ['/v1/completions', 'TextCompletions'],
      ['/v2/rerank', 'Rerank'],
      ['/v1beta/models/g:generateContent', 'GenerateContent'],
      ['/v1beta/models/g:streamGenerateContent', 'GenerateContent'],
      ['/v1/projects/p/locations/l/publishers/google/models/g:countTokens', 'GeminiCountTokens'],
      ['/v1beta/models/g:batchEmbedContents', 'BatchEmbedContents'],
      ['/model/m/converse-stream', 'Converse'],
      ['/model/arn%3Aaws%3Ax%2Fy/invoke-with-response-stream', 'InvokeModel'],
      ['/v1/responses/compact', 'ResponsesCompact'],
      ['/responses/v1/chat/completions', 'Completions'],
      ['/files/v1/messages', 'Messages'],
      ['/batches/v1/responses', 'Responses'],
      ['/anything', 'Completions'],
      ['/', 'Completions'],
      ['/v1/x/../responses', 'Completions'],
    ])('is what SDKs mean by %s: %s', (path, type) => {
      expect(unmapped.find(path)).toBe(type)
      expect(new RouteTypes({}).find(path)).toBe(type)
    })

    it.each([
      ['/v1/responses/resp_A-b', { collection: 'Responses', id: 'resp_A-b' }],
      ['/openai/v1/responses/r/input_items', { id: 'r', part: 'input_items', methods: ['GET'] }],
      ['/v1/conversations', { collection: 'Conversations', methods: ['POST'] }],
      ['/v1/conversations/c/items/i', { id: 'c', part: 'items', item: 'i' }],
      ['/openai/files/f/content', { collection: 'Files', id: 'f', part: 'content' }],
      ['/v1/batches/b/cancel', { collection: 'Batches', methods: ['POST'] }],
    ])('is what is stored at %s', (path, stored) => {
      expect(unmapped.find(path)).toMatchObject(stored)
      const only = new RouteTypes({ '/chat': 'Completions', '*': 'Passthrough' })
      expect(only.find(path)).toBe('Passthrough')
    })

    it.each(ownCollections)('is that of the collection at every path of %s', (name) => {
      const { type } = storedCollections[name]
      for (const above of ['/v1', '/openai', '/openai/v1']) {
        const collection = { collection: type, methods: ['POST'] }
        expect(unmapped.find(`${above}/${name}`)).toMatchObject(collection)
        expect(unmapped.find(`${above}/${name}/x_1`)).toMatchObject({ collection: type, id: 'x_1' })
      }
    })

    it.each(['/v1/realtime', '/v1/vector_stores', '/v1beta/models/g:batchGenerateContent'])(
      'is none for %s',
      (path) => {
        expect(unmapped.find(path)).toMatchObject({ isDefault: false })
      },
    )
  })
})
