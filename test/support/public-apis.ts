/**
 * Ten documents in the manner of public APIs, and what their servers must get. Together they have every style of
 * parameters. `expected` was written by hand from the tables of OpenAPI, not by the code under test.
 */

interface ApiCall {
  readonly tool: string
  readonly args: object
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface PublicApi {
  readonly document: object
  /** Documents that it refers to. */
  readonly references?: Readonly<Record<string, object>>
  readonly calls: readonly ApiCall[]
}

const text = { type: 'string' }
const texts = { type: 'array', items: text }
const map = { type: 'object', additionalProperties: true }
const parameter = (place: string, name: string, more: object = {}) => ({
  name,
  in: place,
  required: place === 'path',
  schema: text,
  ...more,
})
const query = (name: string, more: object = {}) => parameter('query', name, more)
const path = (name: string, more: object = {}) => parameter('path', name, more)
const operation = (operationId: string, parameters: readonly object[], more: object = {}) => ({
  operationId,
  parameters,
  responses: { 200: { description: 'ok' } },
  ...more,
})
const document = (openapi: string, paths: object, more: object = {}) => ({
  openapi,
  info: { title: 'API', version: '1' },
  paths,
  ...more,
})
const body = (type: string, schema: object, more: object = {}) => ({
  requestBody: { required: true, content: { [type]: { schema, ...more } } },
})

export const publicApis: Readonly<Record<string, PublicApi>> = {
  // Code hosting: several parameters in a path, lists with and without explode.
  code: {
    document: document('3.0.3', {
      '/repos/{owner}/{repo}/compare/{base}...{head}': {
        get: operation('compare', [path('owner'), path('repo'), path('base'), path('head')]),
      },
      '/issues': {
        get: operation('issues', [
          query('labels', { schema: texts, explode: false }),
          query('state', { schema: texts }),
        ]),
      },
    }),
    calls: [
      {
        tool: 'compare',
        args: { path: { owner: 'o/x', repo: 'r', base: 'v1', head: 'a b' } },
        method: 'GET',
        url: '/repos/o%2Fx/r/compare/v1...a%20b',
      },
      {
        tool: 'issues',
        args: { query: { labels: ['bug', 'a,b'], state: ['open', 'closed'] } },
        method: 'GET',
        url: '/issues?labels=bug,a%2Cb&state=open&state=closed',
      },
    ],
  },
  // Payments: forms with nested members.
  payments: {
    document: document('3.0.0', {
      '/v1/charges': {
        post: operation(
          'charge',
          [],
          body('application/x-www-form-urlencoded', map, {
            encoding: { metadata: { style: 'deepObject', explode: true } },
          }),
        ),
        get: operation('charges', [query('created', { style: 'deepObject', schema: map })]),
      },
    }),
    calls: [
      {
        tool: 'charges',
        args: { query: { created: { gte: 1, lt: 'a&b' } } },
        method: 'GET',
        url: '/v1/charges?created%5Bgte%5D=1&created%5Blt%5D=a%26b',
      },
    ],
  },
  // Maps: label and matrix styles, of lists and objects.
  maps: {
    document: document('3.1.0', {
      '/tiles/{z}/{size}': {
        get: operation('tile', [
          path('z', { style: 'label', explode: true, schema: texts }),
          path('size', { style: 'matrix', schema: map }),
        ]),
      },
      '/areas/{ids}/{box}/{point}': {
        get: operation('area', [
          path('ids', { style: 'matrix', explode: true, schema: texts }),
          path('box', { style: 'label', schema: map }),
          path('point', { explode: true, schema: map }),
        ]),
      },
    }),
    calls: [
      {
        tool: 'tile',
        args: { path: { z: ['a', 'b'], size: { w: 1, h: 2 } } },
        method: 'GET',
        url: '/tiles/.a.b/;size=w,1,h,2',
      },
      {
        tool: 'area',
        args: { path: { ids: ['3', '4'], box: { x: 1 }, point: { lat: 5, lon: 6 } } },
        method: 'GET',
        url: '/areas/;ids=3;ids=4/.x,1/lat=5,lon=6',
      },
    ],
  },
  // Search: delimited lists, JSON in a parameter, reserved characters.
  search: {
    document: document('3.0.2', {
      '/search': {
        get: operation('search', [
          query('space', { style: 'spaceDelimited', explode: false, schema: texts }),
          query('pipe', { style: 'pipeDelimited', explode: false, schema: texts }),
          query('filter', { schema: undefined, content: { 'application/json': { schema: map } } }),
          query('at', { allowReserved: true }),
        ]),
      },
    }),
    calls: [
      {
        tool: 'search',
        args: {
          query: { space: ['a', 'b'], pipe: ['c', 'd'], filter: { a: ['é'] }, at: 'https://x/?y' },
        },
        method: 'GET',
        url: '/search?space=a%20b&pipe=c%7Cd&filter=%7B%22a%22%3A%5B%22%C3%A9%22%5D%7D&at=https://x/?y',
      },
    ],
  },
  // Messaging of OpenAPI 3.2: a whole query, plain cookies, the method QUERY.
  messaging: {
    document: document('3.2.0', {
      '/messages': {
        get: operation('messages', [
          parameter('querystring', 'selector', {
            schema: undefined,
            content: { 'application/x-www-form-urlencoded': { schema: map } },
          }),
        ]),
        query: operation('find', [], body('application/json', map)),
      },
      '/raw': {
        get: operation('raw', [
          parameter('querystring', 'json', {
            schema: undefined,
            content: { 'application/json': { schema: map } },
          }),
          parameter('cookie', 'color', { style: 'cookie', schema: texts }),
          parameter('cookie', 'plain', { style: 'cookie', explode: false, schema: map }),
        ]),
      },
    }),
    calls: [
      {
        tool: 'messages',
        args: { querystring: { selector: { from: 'a&b', to: ['x', 'y'] } } },
        method: 'GET',
        url: '/messages?from=a%26b&to=x&to=y',
      },
      {
        tool: 'find',
        args: { body: { text: 'é' } },
        method: 'QUERY',
        url: '/messages',
        body: '{"text":"é"}',
      },
      {
        tool: 'raw',
        args: { querystring: { json: { a: 1 } }, cookie: { color: ['a', 'b%'], plain: { x: 1 } } },
        method: 'GET',
        url: '/raw?%7B%22a%22%3A1%7D',
        headers: { cookie: 'color=a; color=b%; plain=x,1' },
      },
    ],
  },
  // Telemetry: headers and cookies.
  telemetry: {
    document: document('3.0.1', {
      '/metrics': {
        get: operation('metrics', [
          parameter('header', 'X-Fields', { schema: texts }),
          parameter('header', 'X-Range', { explode: true, schema: map }),
          parameter('cookie', 'zone', { schema: text }),
        ]),
      },
    }),
    calls: [
      {
        tool: 'metrics',
        args: {
          header: { 'X-Fields': ['a', 'b'], 'X-Range': { from: 1, to: 2 } },
          cookie: { zone: 'eu;west' },
        },
        method: 'GET',
        url: '/metrics',
        headers: { 'x-fields': 'a,b', 'x-range': 'from=1,to=2', cookie: 'zone=eu%3Bwest' },
      },
    ],
  },
  // An older API of Swagger 2.0: collection formats.
  orders: {
    document: {
      swagger: '2.0',
      info: { title: 'Orders', version: '1' },
      basePath: '/api',
      paths: {
        '/orders': {
          get: {
            operationId: 'orders',
            parameters: [
              { name: 'csv', in: 'query', type: 'array', items: text },
              { name: 'multi', in: 'query', type: 'array', items: text, collectionFormat: 'multi' },
              { name: 'pipes', in: 'query', type: 'array', items: text, collectionFormat: 'pipes' },
            ],
            responses: {},
          },
        },
      },
    },
    calls: [
      {
        tool: 'orders',
        args: { query: { csv: ['a', 'b'], multi: ['c', 'd'], pipes: ['e', 'f'] } },
        method: 'GET',
        url: '/api/orders?csv=a,b&multi=c&multi=d&pipes=e%7Cf',
      },
    ],
  },
  // A documents API whose schemas and parameters are in another document.
  library: {
    document: document('3.1.1', {
      '/books/{id}': {
        put: operation(
          'putBook',
          [{ $ref: './common.yaml#/parameters/id' }],
          body('application/json', { $ref: 'common.yaml#/schemas/Book' }),
        ),
      },
    }),
    references: {
      'common.yaml': {
        parameters: { id: path('id', { schema: { $ref: '#/schemas/Id' } }) },
        schemas: {
          Id: text,
          Book: { type: 'object', properties: { id: { $ref: '#/schemas/Id' }, title: text } },
        },
      },
    },
    calls: [
      {
        tool: 'putBook',
        args: { path: { id: '7' }, body: { title: 'a' } },
        method: 'PUT',
        url: '/books/7',
        body: '{"title":"a"}',
      },
    ],
  },
  // Storage: bytes, and objects spread over the query.
  storage: {
    document: document('3.0.3', {
      '/objects/{key}': {
        put: operation(
          'putObject',
          [
            path('key'),
            query('tags', { schema: map }),
            query('meta', { explode: false, schema: map }),
          ],
          body('application/octet-stream', { type: 'string', format: 'binary' }),
        ),
      },
    }),
    calls: [
      {
        tool: 'putObject',
        args: {
          path: { key: 'a#b' },
          query: { tags: { x: 1, y: 'z' }, meta: { m: 'n' } },
          body: Buffer.from('bytes').toString('base64'),
        },
        method: 'PUT',
        url: '/objects/a%23b?x=1&y=z&meta=m,n',
        body: 'bytes',
      },
    ],
  },
  // A feed with pages.
  feed: {
    document: document('3.0.3', {
      '/feed': { get: operation('feed', [query('cursor'), query('limit')]) },
    }),
    calls: [
      {
        tool: 'feed',
        args: { query: { cursor: 'c=1', limit: '2' } },
        method: 'GET',
        url: '/feed?cursor=c%3D1&limit=2',
      },
    ],
  },
}
