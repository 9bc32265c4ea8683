/** OpenAPI documents for tests. */

const text = { type: 'string' }
const get = (operationId: string, more: object = {}) => ({ get: { operationId, ...more } })
const petSchema = {
  type: 'object',
  required: ['id', 'name', 'secret'],
  properties: {
    id: { type: 'integer', readOnly: true },
    name: { type: 'string', nullable: true },
    secret: { type: 'string', writeOnly: true },
    age: { type: 'number', minimum: 0, exclusiveMinimum: true },
    friends: { type: 'array', items: { $ref: '#/components/schemas/Pet' } },
  },
}
/** An API with every kind of parameter and body, and with references that lead elsewhere. */
export const pets = {
  openapi: '3.0.3',
  info: { title: 'Pets', version: '2.1' },
  servers: [{ url: 'https://pets.example.com/{stage}/', variables: { stage: { default: 'v3' } } }],
  components: {
    schemas: { Pet: petSchema },
    securitySchemes: { key: { type: 'apiKey', in: 'query', name: 'api_key' } },
  },
  paths: {
    '/pets/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, schema: text }],
      ...get('getPet', {
        summary: 'Get a pet',
        tags: ['read'],
        parameters: [
          {
            name: 'fields',
            in: 'query',
            style: 'pipeDelimited',
            schema: { type: 'array', items: text },
          },
          { name: 'where', in: 'query', style: 'deepObject', schema: { type: 'object' } },
          { name: 'api_key', in: 'query', schema: text },
          { name: 'X-Trace', in: 'header', schema: text },
          { name: 'Authorization', in: 'header', schema: text },
        ],
        responses: {
          200: {
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
          },
        },
      }),
      put: {
        operationId: 'putPet',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
        },
      },
      delete: { operationId: 'deletePet' },
    },
    '/pets/{id}/photo': {
      post: {
        operationId: 'uploadPhoto',
        parameters: [{ name: 'id', in: 'path', required: true, schema: text }],
        requestBody: {
          content: {
            'multipart/form-data': {
              schema: {
                type: 'object',
                properties: {
                  file: { type: 'string', format: 'binary' },
                  note: text,
                  meta: { type: 'object' },
                },
              },
            },
          },
        },
      },
    },
    '/search': {
      post: {
        operationId: 'search',
        requestBody: {
          content: {
            'application/x-www-form-urlencoded': {
              schema: {
                type: 'object',
                properties: { q: text, tags: { type: 'array', items: text } },
              },
              encoding: { tags: { style: 'form', explode: false } },
            },
          },
        },
      },
    },
    '/list': get('list'),
    '/large': get('large'),
    '/missing': get('missing'),
    '/moved': get('moved'),
    '/picture': get('picture'),
    '/admin/reset': { post: { operationId: 'reset', tags: ['admin'] } },
    '/file': get('readsFile', {
      parameters: [{ name: 'x', in: 'query', schema: { $ref: 'file:///etc/passwd' } }],
    }),
    '/meta': get('readsMetadata', {
      parameters: [{ $ref: 'http://169.254.169.254./latest/meta-data/' }],
    }),
    '/nowhere': get('nowhere', { parameters: [{ $ref: '#/components/parameters/None' }] }),
    '/without-id': { get: { summary: 'No id' } },
  },
}
export const swagger = {
  swagger: '2.0',
  info: { title: 'Old', version: '1' },
  basePath: '/old',
  definitions: { Item: { type: 'object', properties: { name: text } } },
  paths: {
    '/items': get('items', {
      parameters: [
        { name: 'ids', in: 'query', type: 'array', items: text, collectionFormat: 'pipes' },
        { name: 'tags', in: 'query', type: 'array', items: text, collectionFormat: 'multi' },
        { name: 'kinds', in: 'query', type: 'array', items: text },
      ],
    }),
    '/items/new': {
      post: {
        operationId: 'addItem',
        parameters: [
          { name: 'item', in: 'body', required: true, schema: { $ref: '#/definitions/Item' } },
        ],
      },
    },
  },
}
