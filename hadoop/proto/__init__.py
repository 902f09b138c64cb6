"""ClientProtocol on the wire: message classes generated from our own text."""
