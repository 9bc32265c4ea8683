// A gRPC server for the service shop.Cart.
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { cart } from './service.mjs'

const items = []
const server = new Server()
server.addService(cart, {
  Add({ request }, callback) {
    items.push(request)
    callback(null, `${items.length} in the cart`)
  },
  Watch(call) {
    for (const item of items) call.write(item)
    call.end()
  },
  Clear(_, callback) {
    items.length = 0
    callback(null, 'the cart is empty')
  },
})
server.bindAsync('127.0.0.1:9105', ServerCredentials.createInsecure(), (error) => {
  if (error) throw error
  console.log('ready')
})
