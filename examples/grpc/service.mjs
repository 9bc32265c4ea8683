// The service shop.Cart. Its messages are plain text, so that the example needs no .proto file.
const serialize = (text) => Buffer.from(text)
const deserialize = (bytes) => bytes.toString()

const method = (name, responseStream) => ({
  path: `/shop.Cart/${name}`,
  requestStream: false,
  responseStream,
  requestSerialize: serialize,
  requestDeserialize: deserialize,
  responseSerialize: serialize,
  responseDeserialize: deserialize,
})

export const cart = {
  Add: method('Add', false),
  Watch: method('Watch', true),
  Clear: method('Clear', false),
}
