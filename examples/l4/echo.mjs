// A UDP server that returns each datagram in capital letters.
import { createSocket } from 'node:dgram'

const socket = createSocket('udp4')
socket.on('message', (text, { port, address }) => {
  socket.send(text.toString().toUpperCase(), port, address)
})
socket.bind(9053, '127.0.0.1', () => console.log('ready'))
