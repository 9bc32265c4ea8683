// Calls a method of shop.Cart and prints the answers:  client.mjs ADDRESS METHOD [TEXT]
import { credentials, makeGenericClientConstructor, status } from '@grpc/grpc-js'
import { cart } from './service.mjs'

const [address, name, text = 'all'] = process.argv.slice(2)
const Client = makeGenericClientConstructor(cart, 'shop.Cart')
const client = new Client(address, credentials.createInsecure())
const deadline = Date.now() + 10_000

function finish(error) {
  if (error) console.log(`${status[error.code]}: ${error.details}`)
  client.close()
}

if (cart[name].responseStream) {
  const call = client[name](text, { deadline })
  call.on('data', (answer) => console.log(answer))
  call.on('error', finish)
  call.on('end', () => finish())
} else {
  client[name](text, { deadline }, (error, answer) => {
    if (!error) console.log(answer)
    finish(error)
  })
}
