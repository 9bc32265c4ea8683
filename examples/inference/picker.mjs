// An endpoint picker: all chats of a user are sent to the same Pod, so that its caches can be reused.
// It speaks Envoy's external processing protocol. Each request arrives as its head and then its body.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import {
  ProcessingRequestSchema,
  ProcessingResponseSchema,
} from '../../proto/gen/called/ext_proc_pb.ts'

const destination = 'x-gateway-destination-endpoint'

/** The endpoints among which the picker may choose, as `address:port`. */
const endpointsOf = ({ metadataContext }) =>
  metadataContext.filterMetadata['envoy.lb.subset_hint'][`${destination}-subset`]

function endpointOf(body, endpoints) {
  const { user } = JSON.parse(body)
  return endpoints.toSorted()[user.length % endpoints.length]
}

function process(call) {
  const pieces = []
  let endpoints = []
  const send = (response) => call.write(create(ProcessingResponseSchema, { response }))
  const answers = {
    requestHeaders(_, message) {
      endpoints = endpointsOf(message)
    },
    requestBody({ body, endOfStream }) {
      pieces.push(body)
      if (!endOfStream) return
      const whole = Buffer.concat(pieces)
      const rawValue = Buffer.from(endpointOf(whole.toString(), endpoints))
      const headerMutation = { setHeaders: [{ header: { key: destination, rawValue } }] }
      send({ case: 'requestHeaders', value: { response: { headerMutation } } })
      send({ case: 'requestBody', value: bodyOf(whole, true) })
    },
    responseHeaders: () => send({ case: 'responseHeaders', value: {} }),
    responseBody: ({ body, endOfStream }) =>
      send({ case: 'responseBody', value: bodyOf(body, endOfStream) }),
  }
  call.on('data', (message) => answers[message.request.case]?.(message.request.value, message))
  call.on('end', () => call.end())
}

const bodyOf = (body, endOfStream) => ({
  response: {
    bodyMutation: { mutation: { case: 'streamedResponse', value: { body, endOfStream } } },
  },
})

const server = new Server()
server.addService(
  {
    Process: {
      path: '/envoy.service.ext_proc.v3.ExternalProcessor/Process',
      requestStream: true,
      responseStream: true,
      requestDeserialize: (bytes) => fromBinary(ProcessingRequestSchema, bytes),
      requestSerialize: (message) => Buffer.from(toBinary(ProcessingRequestSchema, message)),
      responseDeserialize: (bytes) => fromBinary(ProcessingResponseSchema, bytes),
      responseSerialize: (message) => Buffer.from(toBinary(ProcessingResponseSchema, message)),
    },
  },
  { Process: process },
)
server.bindAsync('127.0.0.1:9107', ServerCredentials.createInsecure(), (error) => {
  if (error) throw error
  console.log('ready')
})
